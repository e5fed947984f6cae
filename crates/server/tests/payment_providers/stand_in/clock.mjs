// The clock of a stand-in. It follows the real time plus an offset, or stands still.

export class Clock {
  #offset = 0;
  #fixed;

  /** Returns Unix time in seconds. */
  now() {
    return this.#fixed ?? Math.floor(Date.now() / 1000) + this.#offset;
  }

  iso() {
    return new Date(this.now() * 1000).toISOString();
  }

  /** Stops the clock at this time. */
  freeze(seconds = this.now()) {
    this.#fixed = seconds;
  }

  /** Moves the clock forward to this time. A frozen clock stays frozen. */
  moveTo(seconds) {
    if (this.#fixed !== undefined) this.#fixed = seconds;
    else this.#offset += seconds - this.now();
  }

  /** Follows the real time again, from the current time of this clock. */
  unfreeze() {
    const now = this.now();
    this.#fixed = undefined;
    this.#offset += now - this.now();
  }
}

const SECONDS = { day: 86_400, week: 604_800 };

/** Adds intervals in UTC. Months and years keep the day of the month of `from`, or use the last day of a shorter month. */
export function addIntervals(from, unit, count) {
  if (SECONDS[unit]) return from + SECONDS[unit] * count;
  const start = new Date(from * 1000);
  const month = start.getUTCMonth() + count * (unit === 'year' ? 12 : 1);
  const lastDay = new Date(Date.UTC(start.getUTCFullYear(), month + 1, 0)).getUTCDate();
  const moved = new Date(start);
  moved.setUTCFullYear(start.getUTCFullYear(), month, Math.min(start.getUTCDate(), lastDay));
  return Math.floor(moved.getTime() / 1000);
}
