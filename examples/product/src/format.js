// Amounts, dates and devices as text.

/** @typedef {import('@perennial/client').Schemas} Schemas */

const CYCLES = {
  daily: 'day',
  weekly: 'week',
  monthly: 'month',
  quarterly: 'quarter',
  semiannual: 'six months',
  yearly: 'year',
  lifetime: undefined,
};

/**
 * @param {number} amount
 * @param {string} currency
 */
export function money(amount, currency) {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency, trailingZeroDisplay: 'stripIfInteger' });
  return format.format(amount);
}

/** Returns what follows a price, such as "per month".
 * @param {Schemas['BillingCycle']} cycle
 */
export function perCycle(cycle) {
  const unit = CYCLES[cycle];
  return unit ? `per ${unit}` : 'once';
}

/** @param {string} time */
export function day(time) {
  return new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(time));
}

const BROWSERS = /** @type {const} */ ([
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
]);
const SYSTEMS = /** @type {const} */ ([
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'Mac'],
  ['Linux', 'Linux'],
]);

/**
 * Returns a device as its user knows it, such as "Firefox on Windows".
 *
 * @param {string | null} userAgent
 */
export function device(userAgent) {
  const text = userAgent ?? '';
  const browser = BROWSERS.find(([word]) => text.includes(word))?.[1];
  const system = SYSTEMS.find(([word]) => text.includes(word))?.[1];
  if (browser && system) return `${browser} on ${system}`;
  return browser ?? system ?? (text.slice(0, 80) || 'Unknown device');
}
