// Expands identifiers into objects, and includes lists that are left out by default.

import { invalid } from './errors.mjs';
import { INCLUDABLE, render } from './views.mjs';

const MAX_DEPTH = 4;

/** Applies `expand[]` to a rendered object or list. */
export function expand(ledger, target, paths, version) {
  for (const path of [paths].flat()) {
    const keys = path.split('.');
    if (keys.length > MAX_DEPTH) {
      throw invalid(`You cannot expand more than ${MAX_DEPTH} levels of a property. Property: ${path}`);
    }
    expandPath(ledger, target, keys, version, path);
  }
}

function expandPath(ledger, target, [key, ...rest], version, path) {
  if (Array.isArray(target)) {
    for (const item of target) expandPath(ledger, item, [key, ...rest], version, path);
    return;
  }
  const include = INCLUDABLE[target.object]?.[key];
  if (include) target[key] ??= include(ledger, target, version);
  if (!(key in target)) {
    throw invalid(`This property cannot be expanded (${path}).`, { param: 'expand' });
  }
  if (typeof target[key] === 'string') {
    const record = ledger.find(target[key]);
    if (!record || record.id === target.id) throw invalid(`This property cannot be expanded (${path}).`, { param: 'expand' });
    target[key] = render(ledger, record, version);
  }
  if (rest.length > 0 && target[key] !== null) expandPath(ledger, target[key], rest, version, path);
}
