// Moves the clock of a stand-in, and runs everything that becomes due in between, in order of time.

/**
 * Moves the clock to `target`, in seconds. `sources` yields `[state, record]` pairs; `dueAt(record)` returns the time at
 * which something happens to a record, or undefined; `runDue(state, record)` does it, and returns the records whose due
 * time may have changed.
 */
export function advanceClock(clock, sources, target, { dueAt, runDue }) {
  const heap = new Heap();
  const add = (state, record) => {
    const at = dueAt(record);
    if (at !== undefined && at <= target) heap.push({ at, state, record });
  };
  for (const [state, record] of sources) add(state, record);
  for (let next = heap.pop(); next; next = heap.pop()) {
    // A record that was changed meanwhile is in the heap again with its new time.
    if (dueAt(next.record) !== next.at) continue;
    if (next.at > clock.now()) clock.moveTo(next.at);
    for (const record of runDue(next.state, next.record)) add(next.state, record);
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
