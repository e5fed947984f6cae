/** Returns how many decimals a currency has. */
export function decimals(currency: string): number {
  try {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency });
    return format.resolvedOptions().maximumFractionDigits ?? 2;
  } catch {
    return 2;
  }
}

type Numeric = number | string;

/** Formats an amount with all decimals of its currency: "1,234.50". Decimal strings stay exact. */
export function amount(value: Numeric, currency: string, sign = false): string {
  const digits = decimals(currency);
  return new Intl.NumberFormat('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: Math.max(digits, 4),
    signDisplay: sign ? 'exceptZero' : 'auto',
  })
    .format(value as number)
    .replace('-', '−');
}

/** "1,234.50 USD" */
export const money = (value: Numeric, currency: string, sign = false) =>
  `${amount(value, currency, sign)} ${currency}`;

/** Formats a whole number: "12,345". */
export const count = (value: number) => new Intl.NumberFormat('en').format(value);

/** Formats a share of 1, such as "0.0310", as "3.1 %". Null is unknown: "–". */
export function percent(share: string | null | undefined): string {
  if (share == null) return '–';
  const format = new Intl.NumberFormat('en', {
    minimumFractionDigits: 1,
    maximumFractionDigits: 1,
  });
  return `${format.format(Number(share) * 100).replace('-', '−')} %`;
}

/** "1 payment", "2 payments". */
export const pluralize = (n: number, noun: string) => `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
