// Finds the handler of a request by method and path.

export class Router {
  #routes = new Map();

  /** @param {Array<[string, string, Function]>} routes Method, path with `:name` segments, handler. */
  constructor(routes) {
    for (const [method, pattern, handler] of routes) {
      const segments = pattern.split('/');
      const key = `${method} ${segments.length}`;
      const entry = { pattern, segments, handler, fixed: segments.filter((segment) => !segment.startsWith(':')).length };
      this.#routes.set(
        key,
        [...(this.#routes.get(key) ?? []), entry].sort((a, b) => b.fixed - a.fixed),
      );
    }
  }

  /** Returns `{ pattern, handler, path }`, where `path` has the values of the named segments. */
  find(method, pathname) {
    const parts = pathname.split('/');
    for (const { pattern, segments, handler } of this.#routes.get(`${method} ${parts.length}`) ?? []) {
      const path = {};
      const isMatch = segments.every((segment, at) => {
        if (!segment.startsWith(':')) return segment === parts[at];
        path[segment.slice(1)] = decodeURIComponent(parts[at]);
        return parts[at] !== '';
      });
      if (isMatch) return { pattern, handler, path };
    }
    return undefined;
  }
}
