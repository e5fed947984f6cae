import { useEffect, useRef, useState } from 'react';
import './tooltip.css';

type Shown = { text: string; x: number; y: number; below: boolean };

/** Shows the `data-tip` of the hovered or focused element. One instance serves the whole page. */
export function Tooltip() {
  const [shown, setShown] = useState<Shown | null>(null);
  const target = useRef<Element | null>(null);

  useEffect(() => {
    function show(event: Event) {
      const element = event.target instanceof Element ? event.target.closest('[data-tip]') : null;
      if (event.target instanceof Element && event.target.closest('.tooltip')) return;
      if (element === target.current) return;
      target.current?.removeAttribute('aria-describedby');
      target.current = element;
      const text = element?.getAttribute('data-tip');
      if (!element || !text) return setShown(null);
      const box = element.getBoundingClientRect();
      const below = box.top < 48;
      element.setAttribute('aria-describedby', 'tooltip');
      setShown({ text, x: box.left + box.width / 2, y: below ? box.bottom : box.top, below });
    }
    function hide(event: Event) {
      if (event instanceof KeyboardEvent && event.key !== 'Escape') return;
      target.current?.removeAttribute('aria-describedby');
      target.current = null;
      setShown(null);
    }
    document.addEventListener('pointerover', show);
    document.addEventListener('focusin', show);
    document.addEventListener('keydown', hide);
    document.addEventListener('focusout', hide);
    document.addEventListener('scroll', hide, true);
    return () => {
      document.removeEventListener('pointerover', show);
      document.removeEventListener('focusin', show);
      document.removeEventListener('keydown', hide);
      document.removeEventListener('focusout', hide);
      document.removeEventListener('scroll', hide, true);
    };
  }, []);

  if (!shown) return null;
  const x = Math.min(Math.max(shown.x, 130), window.innerWidth - 130);
  return (
    <div
      className={shown.below ? 'tooltip tooltip-below' : 'tooltip'}
      id="tooltip"
      role="tooltip"
      style={{ left: x, top: shown.y }}
    >
      {shown.text}
    </div>
  );
}
