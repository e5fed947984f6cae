// Faults that tests inject into the responses of a stand-in.
//
// A rule has `path` (exact, or a prefix that ends in *), optionally `method`, `count` (default: until cleared), and a `kind`:
//
//   status    responds with `status`, and with Retry-After if `retry_after` is given
//   timeout   never responds
//   slow      responds after `delay_ms`
//   garbage   responds 200 with a body that is not JSON
//   reset     closes the connection without a response
//
// With `executes`, the request takes effect before its response is lost.

import { setTimeout as sleep } from 'node:timers/promises';

const KINDS = new Set(['status', 'timeout', 'slow', 'garbage', 'reset']);

export class Faults {
  #rules = [];

  add(rule) {
    if (!KINDS.has(rule.kind)) throw new Error(`kind must be one of ${[...KINDS].join(', ')}`);
    if (typeof rule.path !== 'string') throw new Error('path must be a string');
    this.#rules.push({ count: Infinity, ...rule });
  }

  clear() {
    this.#rules = [];
  }

  list() {
    return this.#rules;
  }

  /** Returns the fault for this request, if there is one, and counts it. */
  take(method, path) {
    const rule = this.#rules.find(
      (candidate) =>
        (!candidate.method || candidate.method === method) &&
        (candidate.path.endsWith('*') ? path.startsWith(candidate.path.slice(0, -1)) : path === candidate.path),
    );
    if (!rule) return undefined;
    rule.count -= 1;
    if (rule.count <= 0) this.#rules = this.#rules.filter((other) => other !== rule);
    return rule;
  }
}

/** Applies a fault other than `status`. Returns whether the fault has consumed the response. */
export async function applyFault(rule, response) {
  switch (rule.kind) {
    case 'slow':
      await sleep(rule.delay_ms ?? 1000);
      return false;
    case 'garbage':
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<html><body>Bad gateway</body></html>\n{"object": "li');
      return true;
    case 'reset':
      response.socket.destroy();
      return true;
    default:
      // A timeout: the response stays open until the client closes the connection.
      return true;
  }
}
