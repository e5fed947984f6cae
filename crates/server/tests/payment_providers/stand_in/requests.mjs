// Counts and records the requests that a stand-in has received.

const MAX_RECORDED = 5000;

export class Requests {
  #byRoute = new Map();
  #byPath = new Map();
  #recent = [];

  add(route, entry) {
    const name = `${entry.method} ${route}`;
    this.#byRoute.set(name, (this.#byRoute.get(name) ?? 0) + 1);
    const path = `${entry.method} ${entry.path}`;
    this.#byPath.set(path, (this.#byPath.get(path) ?? 0) + 1);
    this.#recent.push(entry);
    if (this.#recent.length > MAX_RECORDED) this.#recent.splice(0, MAX_RECORDED / 10);
  }

  counts() {
    const total = [...this.#byRoute.values()].reduce((sum, count) => sum + count, 0);
    return { total, by_route: Object.fromEntries(this.#byRoute), by_path: Object.fromEntries(this.#byPath) };
  }

  recent() {
    return this.#recent;
  }

  clear() {
    this.#byRoute.clear();
    this.#byPath.clear();
    this.#recent = [];
  }
}
