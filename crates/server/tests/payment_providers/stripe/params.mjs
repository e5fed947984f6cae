// Parameters of requests: form encoding with brackets, and the checks that Stripe makes of them.

import { invalid } from './errors.mjs';

/** Parses `a[b][0]=c` into `{ a: { b: ['c'] } }`. */
export function parseForm(text) {
  const root = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const keys = [...name.matchAll(/[^[\]]+|\[\]/g)].map(([key]) => key);
    let target = root;
    keys.forEach((key, at) => {
      const isLast = at === keys.length - 1;
      const slot = key === '[]' ? Object.keys(target).length : key;
      if (isLast) target[slot] = value;
      else target = target[slot] = Object(target[slot]) === target[slot] ? target[slot] : {};
    });
  }
  return arrays(root);
}

/** Turns objects whose keys are 0, 1, 2… into arrays. */
function arrays(value) {
  if (typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, item]) => [key, arrays(item)]);
  if (entries.length > 0 && entries.every(([key], at) => key === String(at))) return entries.map(([, item]) => item);
  return Object.fromEntries(entries);
}

/** Rejects parameters that are not listed. */
export function allow(params, names) {
  for (const name of Object.keys(params)) {
    if (!names.includes(name)) {
      throw invalid(`Received unknown parameter: ${name}`, { code: 'parameter_unknown', param: name });
    }
  }
}

export function required(params, name) {
  if (params[name] === undefined || params[name] === '') {
    throw invalid(`Missing required param: ${name}.`, { code: 'parameter_missing', param: name });
  }
  return params[name];
}

/** Returns undefined if the parameter was not sent. */
export function integer(value, param) {
  if (value === undefined || value === '') return undefined;
  if (!/^-?\d+$/.test(value)) {
    throw invalid(`Invalid integer: ${value}`, { code: 'parameter_invalid_integer', param });
  }
  return Number(value);
}

export function boolean(value, param) {
  if (value === undefined || value === '') return undefined;
  if (value !== true && value !== false && value !== 'true' && value !== 'false') {
    throw invalid(`Invalid boolean: ${value}`, { param });
  }
  return String(value) === 'true';
}

export function oneOf(value, values, param) {
  if (value === undefined || value === '' || values.includes(value)) return value || undefined;
  throw invalid(`Invalid ${param}: must be one of ${values.join(', ')}`, { param });
}

/** An empty string unsets a parameter; a missing one leaves the current value. */
export function emptyable(value, current = null) {
  if (value === undefined) return current;
  return value === '' ? null : value;
}

/** Merges metadata: an empty value removes its key, and an empty parameter removes all. */
export function mergeMetadata(current, change) {
  if (change === undefined) return current ?? {};
  if (change === '') return {};
  const merged = { ...current };
  for (const [key, value] of Object.entries(change)) {
    if (value === '') delete merged[key];
    else merged[key] = String(value);
  }
  return merged;
}

export function currency(value) {
  if (!/^[a-z]{3}$/i.test(value)) throw invalid(`Invalid currency: ${value}.`, { param: 'currency' });
  return value.toLowerCase();
}

/** Returns a condition for `created=…` or `created[gte]=…`. */
export function createdRange(range) {
  if (range === undefined) return () => true;
  if (typeof range === 'string') return ({ created }) => created === integer(range, 'created');
  allow(range, ['gt', 'gte', 'lt', 'lte']);
  const bound = (name) => integer(range[name], `created[${name}]`);
  const [gt, gte, lt, lte] = [bound('gt'), bound('gte'), bound('lt'), bound('lte')];
  return ({ created }) =>
    (gt === undefined || created > gt) &&
    (gte === undefined || created >= gte) &&
    (lt === undefined || created < lt) &&
    (lte === undefined || created <= lte);
}
