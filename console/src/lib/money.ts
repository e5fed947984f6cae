/** Returns a function that computes each value once. Number formats are slow to create. */
function cached<Value>(compute: (key: string) => Value): (key: string) => Value {
  const values = new Map<string, Value>();
  return (key) => {
    const known = values.get(key);
    if (known !== undefined) return known;
    const value = compute(key);
    values.set(key, value);
    return value;
  };
}

/** Returns how many decimals a currency has. */
export const decimals = cached((currency): number => {
  try {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency });
    return format.resolvedOptions().maximumFractionDigits ?? 2;
  } catch {
    return 2;
  }
});

const amountFormat = (signDisplay: 'auto' | 'exceptZero') =>
  cached((currency) => {
    const digits = decimals(currency);
    return new Intl.NumberFormat('en', {
      minimumFractionDigits: digits,
      maximumFractionDigits: Math.max(digits, 4),
      signDisplay,
    });
  });
const plainFormat = amountFormat('auto');
const signedFormat = amountFormat('exceptZero');
const countFormat = new Intl.NumberFormat('en');
const percentFormat = new Intl.NumberFormat('en', {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});

type Numeric = number | string;

/** Formats an amount with all decimals of its currency: "1,234.50". Decimal strings stay exact. */
export function amount(value: Numeric, currency: string, sign = false): string {
  const format = sign ? signedFormat(currency) : plainFormat(currency);
  return format.format(value as number).replace('-', '−');
}

/** "1,234.50 USD" */
export const money = (value: Numeric, currency: string, sign = false) =>
  `${amount(value, currency, sign)} ${currency}`;

/** Formats a whole number: "12,345". */
export const count = (value: number) => countFormat.format(value);

/** Formats a share of 1, such as "0.0310", as "3.1 %". Null is unknown: "–". */
export function percent(share: string | null | undefined): string {
  if (share == null) return '–';
  return `${percentFormat.format(Number(share) * 100).replace('-', '−')} %`;
}

/** "1 payment", "2 payments". */
export const pluralize = (n: number, noun: string) => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
