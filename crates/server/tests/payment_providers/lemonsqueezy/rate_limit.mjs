// The rate limit: 300 requests per minute and key, in windows of a minute of real time.

import { ApiError } from './errors.mjs';

const WINDOW = 60_000;

export class RateLimit {
  #windows = new Map();

  /** Counts a request. Returns the headers of its response, or throws 429. */
  take(key, limit) {
    const now = Date.now();
    let window = this.#windows.get(key);
    if (!window || now - window.start >= WINDOW) {
      window = { start: now, used: 0 };
      this.#windows.set(key, window);
    }
    window.used += 1;
    const headers = { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(Math.max(0, limit - window.used)) };
    if (window.used <= limit) return headers;
    const seconds = Math.ceil((window.start + WINDOW - now) / 1000);
    throw new ApiError(429, 'Too Many Attempts.', { headers: { ...headers, 'retry-after': String(seconds) } });
  }
}
