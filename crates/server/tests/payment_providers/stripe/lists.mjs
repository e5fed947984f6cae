// Cursor pagination of lists.

import { allow, createdRange, integer } from './params.mjs';
import { invalid, missing } from './errors.mjs';

export class Page {
  constructor(records, hasMore, url) {
    this.records = records;
    this.hasMore = hasMore;
    this.url = url;
  }
}

/**
 * Returns a page of a collection. `filters` maps parameters to record fields; `matches` is any further condition;
 * `also` lists the parameters that `matches` uses.
 */
export function listPage(collection, url, params, { filters = {}, matches = () => true, also = [] } = {}) {
  allow(params, ['limit', 'starting_after', 'ending_before', 'created', 'expand', ...Object.keys(filters), ...also]);
  const limit = integer(params.limit, 'limit') ?? 10;
  if (limit < 1 || limit > 100) {
    const message =
      limit < 1
        ? 'This value must be greater than or equal to 1.'
        : "This value must be less than or equal to 100 (it currently is '" + limit + "').";
    throw invalid(message, { code: 'parameter_invalid_integer', param: 'limit' });
  }
  for (const cursor of ['starting_after', 'ending_before']) {
    if (params[cursor] !== undefined && !collection.get(params[cursor])) {
      throw missing(url.split('/').at(-1).replace(/s$/, ''), params[cursor], cursor, 400);
    }
  }
  const isCreated = createdRange(params.created);
  const equal = Object.entries(filters)
    .filter(([param]) => params[param] !== undefined)
    .map(([param, field]) => [field, params[param]]);
  const { records, hasMore } = collection.page({
    filters: Object.fromEntries(equal),
    matches: (record) => !record.deleted && isCreated(record) && matches(record),
    limit,
    after: params.starting_after,
    before: params.ending_before,
  });
  return new Page(records, hasMore, url);
}

/** Returns a list with all records, as objects embed them. */
export function embedded(data, url) {
  return { object: 'list', data, has_more: false, url };
}
