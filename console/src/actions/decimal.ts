const DECIMAL = /^(\d+)(?:\.(\d+))?$/;

/** Returns whether a text is an amount: digits, with or without decimals. */
export const isDecimal = (text: string) => DECIMAL.test(text);

const scaleOf = (text: string) => DECIMAL.exec(text)?.[2]?.length ?? 0;

/** Returns an amount in units of `10^-scale`. */
function unitsOf(text: string, scale: number): bigint {
  const [, whole = '0', fraction = ''] = DECIMAL.exec(text) ?? [];
  return BigInt(whole + fraction.padEnd(scale, '0'));
}

/** Returns the exact sum of two amounts. */
export function addDecimals(a: string, b: string): string {
  const scale = Math.max(scaleOf(a), scaleOf(b));
  const units = String(unitsOf(a, scale) + unitsOf(b, scale)).padStart(scale + 1, '0');
  return scale ? `${units.slice(0, -scale)}.${units.slice(-scale)}` : units;
}

/** Returns -1, 0 or 1, as the first amount is less than, equal to or more than the second. */
export function compareDecimals(a: string, b: string): number {
  const scale = Math.max(scaleOf(a), scaleOf(b));
  const [left, right] = [unitsOf(a, scale), unitsOf(b, scale)];
  return left < right ? -1 : left > right ? 1 : 0;
}
