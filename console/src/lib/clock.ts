import { useSyncExternalStore } from 'react';
import { useSession } from '../api/session';

const TICK_INTERVAL = 15_000;
const round = () => Math.floor(Date.now() / TICK_INTERVAL) * TICK_INTERVAL;
const listeners = new Set<() => void>();
let ticks = round();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

setInterval(() => {
  ticks = round();
  for (const listener of listeners) listener();
}, TICK_INTERVAL);

/** Returns the service's clock in milliseconds, in a sandbox the simulated one. Renders again as it advances. */
export function useNow(): number {
  const { clockOffset } = useSession();
  return useSyncExternalStore(subscribe, () => ticks) + clockOffset;
}
