// API versions. Basil (2025-03-31) moved the period of a subscription to its items, and the link from an invoice to its
// subscription and payments.

import { invalid } from './errors.mjs';

export const LATEST_VERSION = '2026-10-28.endive';
const BASIL = '2025-03-31';

export function isBeforeBasil(version) {
  return version < BASIL;
}

/** Accepts any well-formed version, also one of the future, which is served with the latest shapes. */
export function checkVersion(version) {
  if (!/^\d{4}-\d{2}-\d{2}(\.[a-z]+)?$/.test(version)) {
    throw invalid(`Invalid Stripe API version: ${version}`);
  }
  return version;
}
