// Amounts and their formatted text.
//
// How Lemon Squeezy writes currencies without two decimals is not documented. The stand-in can write them in three ways:
//
//   minor         the minor unit of ISO 4217: 1500 is "¥1,500"
//   hundredths    two decimals for every currency: 150000 is "¥1,500.00"
//   inconsistent  an amount in hundredths whose text has no decimals: 150000 is "¥1,500"
//
// USD is the same in all three.

const DECIMALS = { BHD: 3, KWD: 3, OMR: 3, TND: 3, CLP: 0, ISK: 0, JPY: 0, KRW: 0, PYG: 0, UGX: 0, VND: 0, XAF: 0, XOF: 0 };

export const AMOUNT_STYLES = ['minor', 'hundredths', 'inconsistent'];

function decimals(currency) {
  return DECIMALS[currency] ?? 2;
}

/** Returns the integer that stands for an amount in ISO 4217 minor units. */
export function writeAmount(minor, currency, style) {
  if (style === 'minor') return minor;
  return Math.round(minor * 10 ** (2 - decimals(currency)));
}

/** Returns the ISO 4217 minor units of an amount in a request. */
export function readAmount(value, currency, style) {
  if (value === undefined || style === 'minor') return value;
  return Math.round(value * 10 ** (decimals(currency) - 2));
}

export function formatAmount(minor, currency, style) {
  const digits = style === 'hundredths' ? 2 : decimals(currency);
  return formatter(currency, digits).format(minor / 10 ** decimals(currency));
}

/** Formatters take long to create, so they are kept. */
const formatters = new Map();

function formatter(currency, digits) {
  const key = `${currency} ${digits}`;
  if (!formatters.has(key)) {
    const options = { style: 'currency', currency, minimumFractionDigits: digits, maximumFractionDigits: digits };
    formatters.set(key, new Intl.NumberFormat('en-US', options));
  }
  return formatters.get(key);
}

/** Returns the fields of one amount, for example `total`, `total_usd` and `total_formatted`. */
export function amountFields(name, minor, currency, { amount_style: style }) {
  return {
    [name]: writeAmount(minor, currency, style),
    // The rate to USD is made up, so that readers of these fields are noticed.
    [`${name}_usd`]: currency === 'USD' ? minor : minor * 3 + 7,
    [`${name}_formatted`]: formatAmount(minor, currency, style),
  };
}
