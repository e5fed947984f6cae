// Lists with numbered pages, newest first.

import { ApiError } from './errors.mjs';
import { RESOURCES } from './views.mjs';

const MAX_PAGE_SIZE = 100;

/** Returns `{ records, meta, links }` of a page. */
export function listPage(shop, type, query, address) {
  const filters = readFilters(type, query);
  const size = number(query, 'page[size]', 10);
  const page = number(query, 'page[number]', 1);
  if (size > MAX_PAGE_SIZE) throw new ApiError(400, `The page size must not be greater than ${MAX_PAGE_SIZE}.`);
  const matching = select(shop, type, filters);
  const total = matching.length;
  const lastPage = Math.max(1, Math.ceil(total / size));
  const records = [];
  const end = Math.max(-1, total - 1 - page * size);
  for (let at = total - 1 - (page - 1) * size; at > end && at >= 0; at -= 1) records.push(matching[at]);
  const from = records.length === 0 ? null : (page - 1) * size + 1;
  const link = (to) => {
    const parameters = new URLSearchParams(query);
    parameters.set('page[number]', String(to));
    parameters.set('page[size]', String(size));
    return `${address()}/v1/${type}?${parameters}`;
  };
  return {
    records,
    meta: {
      page: { currentPage: page, from, lastPage, perPage: size, to: from === null ? null : from + records.length - 1, total },
    },
    links: {
      first: link(1),
      last: link(lastPage),
      ...(page < lastPage ? { next: link(page + 1) } : {}),
      ...(page > 1 ? { prev: link(page - 1) } : {}),
    },
  };
}

function readFilters(type, query) {
  const allowed = RESOURCES[type].filters;
  const filters = [];
  for (const [name, value] of query) {
    const filter = /^filter\[(\w+)\]$/.exec(name)?.[1];
    if (!filter) continue;
    if (!allowed[filter]) throw new ApiError(400, `Filter parameter ${filter} is not allowed.`);
    filters.push([allowed[filter], value]);
  }
  return filters;
}

/** Returns the records that match, in order of creation. Without filters or deleted records nothing is copied. */
function select(shop, type, filters) {
  const all = shop.all(type);
  if (filters.length === 0 && type !== 'webhooks') return all;
  return all.filter((record) => !record.deleted && filters.every(([field, value]) => String(record[field]) === value));
}

function number(query, name, otherwise) {
  const text = query.get(name);
  if (text === null) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new ApiError(400, `The ${name} must be a positive integer.`);
  return value;
}
