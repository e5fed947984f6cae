import { useEffect, useRef } from 'react';

const STORAGE_KEY = 'perennial-single-keys';

/** Returns whether keys without Ctrl or ⌘ are shortcuts. They can interfere with speech input. */
export const hasSingleKeys = () => localStorage.getItem(STORAGE_KEY) !== 'off';

export function setSingleKeys(isOn: boolean): void {
  if (isOn) localStorage.removeItem(STORAGE_KEY);
  else localStorage.setItem(STORAGE_KEY, 'off');
}

/** Returns whether a key press is text for a field. */
function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Calls a handler for a key outside of text fields; `mod+k` also inside. */
export function useHotkeys(handlers: Record<string, () => void>): void {
  const latest = useRef(handlers);
  useEffect(() => {
    latest.current = handlers;
  });
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent) {
      if (event.defaultPrevented || event.altKey) return;
      const mod = event.metaKey || event.ctrlKey;
      const isBlocked = isTyping(event.target) || document.querySelector('[role=dialog]');
      if (!mod && (isBlocked || !hasSingleKeys())) return;
      const handler = latest.current[mod ? `mod+${event.key.toLowerCase()}` : event.key];
      if (!handler) return;
      event.preventDefault();
      handler();
    }
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
}

/** Moves the focus to the next or previous row's link. */
export function moveRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')];
  const at = rows.findIndex((row) => row === document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step;
  const row = rows[Math.min(Math.max(next, 0), rows.length - 1)];
  row?.focus();
  row?.scrollIntoView({ block: 'nearest' });
}
