import { useEffect, useRef, useState } from 'react';

/** Says what an action has done, where its button was, which may have vanished. The focus moves there. */
export function useDone() {
  const [done, setDone] = useState<{ text: string } | null>(null);
  const ref = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (done) ref.current?.focus();
  }, [done]);
  const notice = done && (
    <span ref={ref} role="status" tabIndex={-1} className="notice">
      {done.text}
    </span>
  );
  return { notice, say: (text: string) => setDone({ text }) };
}
