import { useCallback, useState } from 'react';

/** Calls `listener` with the width of an element after its first layout and each change. Returns how to stop it. */
export function observeWidth(element: HTMLElement, listener: (width: number) => void): () => void {
  const observer = new ResizeObserver(() => listener(element.clientWidth));
  observer.observe(element);
  return () => observer.disconnect();
}

/** Returns the width of an element, which is 0 before the first layout, and the ref to attach to it. */
export function useWidth() {
  const [width, setWidth] = useState(0);
  const ref = useCallback((element: HTMLElement | null) => {
    if (!element) return;
    setWidth(element.clientWidth);
    return observeWidth(element, setWidth);
  }, []);
  return { ref, width };
}
