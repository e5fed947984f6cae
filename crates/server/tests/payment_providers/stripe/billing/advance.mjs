// Moves the clock, and does on the way what becomes due, in order of time.

import { dueAt, runDue } from './cycle.mjs';

/** Moves the clock of the ledgers to `target`, in seconds. */
export function advanceClock(clock, ledgers, target) {
  const heap = new Heap();
  const add = (ledger, record) => {
    const at = dueAt(record);
    if (at !== undefined && at <= target) heap.push({ at, ledger, record });
  };
  for (const ledger of ledgers) {
    for (const name of ['subscriptions', 'invoices', 'checkout_sessions']) {
      for (const record of ledger[name].all()) add(ledger, record);
    }
  }
  for (let next = heap.pop(); next; next = heap.pop()) {
    // A record that was changed meanwhile is in the heap again with its new time.
    if (dueAt(next.record) !== next.at) continue;
    if (next.at > clock.now()) clock.moveTo(next.at);
    for (const record of runDue(next.ledger, next.record)) add(next.ledger, record);
  }
  if (target > clock.now()) clock.moveTo(target);
}

class Heap {
  #items = [];

  push(item) {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0 && items[(at - 1) >> 1].at > items[at].at) {
      const parent = (at - 1) >> 1;
      [items[at], items[parent]] = [items[parent], items[at]];
      at = parent;
    }
  }

  pop() {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (items.length === 0) return top;
    items[0] = last;
    for (let at = 0; ;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && items[child].at < items[least].at) least = child;
      }
      if (least === at) return top;
      [items[at], items[least]] = [items[least], items[at]];
      at = least;
    }
  }
}
