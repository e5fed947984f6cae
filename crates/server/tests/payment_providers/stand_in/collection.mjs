// Records of one kind in memory, in order of creation, with indexes on fields that never change.

/** The position of a record in its collection. A symbol, so that copies and JSON do not have it. */
const POSITION = Symbol('position');

export class Collection {
  #all = [];
  #byId = new Map();
  #indexes = new Map();

  /** @param {string[]} indexed Fields to index. Their values must not change after `insert`. */
  constructor(indexed = []) {
    for (const field of indexed) this.#indexes.set(field, new Map());
  }

  insert(record) {
    record[POSITION] = this.#all.length;
    this.#all.push(record);
    this.#byId.set(record.id, record);
    for (const [field, index] of this.#indexes) {
      const bucket = index.get(record[field]);
      if (bucket) bucket.push(record);
      else index.set(record[field], [record]);
    }
    return record;
  }

  get(id) {
    return this.#byId.get(id);
  }

  /** Returns the records in order of creation; those with this value if a field is given. */
  all(field, value) {
    if (field === undefined) return this.#all;
    return this.#indexes.get(field).get(value) ?? [];
  }

  /**
   * Returns up to `limit` records, newest first, and whether there are more.
   * `filters` compares fields for equality and uses an index if there is one; `matches` is any further condition.
   */
  page({ filters = {}, matches = () => true, limit, after, before }) {
    const indexed = Object.keys(filters).find((field) => this.#indexes.has(field));
    const source = indexed ? this.all(indexed, filters[indexed]) : this.#all;
    const others = Object.entries(filters).filter(([field]) => field !== indexed);
    const isMatch = (record) => others.every(([field, value]) => record[field] === value) && matches(record);
    const found = [];
    if (before !== undefined) {
      for (let at = this.#offset(source, before) + 1; at < source.length && found.length <= limit; at += 1) {
        if (isMatch(source[at])) found.push(source[at]);
      }
      return { records: found.slice(0, limit).reverse(), hasMore: found.length > limit };
    }
    const start = after === undefined ? source.length - 1 : this.#offset(source, after, -1);
    for (let at = start; at >= 0 && found.length <= limit; at -= 1) {
      if (isMatch(source[at])) found.push(source[at]);
    }
    return { records: found.slice(0, limit), hasMore: found.length > limit };
  }

  /** Returns the offset of a record in the source plus `shift`. If the source lacks it, returns that of the next older record. */
  #offset(source, id, shift = 0) {
    const position = this.#byId.get(id)[POSITION];
    let low = 0;
    let high = source.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (source[middle][POSITION] < position) low = middle + 1;
      else high = middle;
    }
    return source[low]?.id === id ? low + shift : low - 1;
  }
}
