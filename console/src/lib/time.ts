/** Times are shown in UTC everywhere, as the service counts days in UTC. */
const UTC = { timeZone: 'UTC' } as const;
const exactFormat = new Intl.DateTimeFormat('en-GB', {
  ...UTC,
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});
const dayFormat = new Intl.DateTimeFormat('en-GB', { ...UTC, day: 'numeric', month: 'short' });
const dayYearFormat = new Intl.DateTimeFormat('en-GB', {
  ...UTC,
  day: 'numeric',
  month: 'short',
  year: 'numeric',
});
const monthFormat = new Intl.DateTimeFormat('en-GB', { ...UTC, month: 'short' });
const monthYearFormat = new Intl.DateTimeFormat('en-GB', {
  ...UTC,
  month: 'long',
  year: 'numeric',
});

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const UNITS: [number, string][] = [
  [365 * DAY, 'year'],
  [30 * DAY, 'month'],
  [DAY, 'day'],
  [HOUR, 'hour'],
  [MINUTE, 'minute'],
];

// ICU versions differ in "Sept"; the console always shows three letters.
const short = (text: string) => text.replace('Sept', 'Sep');

/** "12 Nov 2026, 09:30:00 UTC" */
export const exact = (at: string | number) => `${short(exactFormat.format(new Date(at)))} UTC`;

/** "09:30 UTC" */
export const clock = (at: string | number) => `${new Date(at).toISOString().slice(11, 16)} UTC`;

/** "12 Nov", with the year unless it is the year of `now`. */
export function day(at: string | number, now: number): string {
  const date = new Date(at);
  const isThisYear = date.getUTCFullYear() === new Date(now).getUTCFullYear();
  return short((isThisYear ? dayFormat : dayYearFormat).format(date));
}

/** "12 Nov 2026", which does not break. */
export const dayOfYear = (at: string | number) =>
  short(dayYearFormat.format(new Date(at))).replaceAll(' ', '\u00a0');

/** "12 Nov, 09:30", with the year unless it is the year of `now`. */
export const moment = (at: string | number, now: number) =>
  `${day(at, now)}, ${new Date(at).toISOString().slice(11, 16)}`;

/** "Nov", and in January, "Jan ’27". */
export function monthTick(at: string | number): string {
  const date = new Date(at);
  const month = short(monthFormat.format(date));
  return date.getUTCMonth() === 0 ? `${month} ’${String(date.getUTCFullYear()).slice(2)}` : month;
}

/** "Nov 2026" */
export const shortMonth = (at: string | number) =>
  `${short(monthFormat.format(new Date(at)))} ${new Date(at).getUTCFullYear()}`;

/** "November 2026" */
export const month = (at: string | number) => monthYearFormat.format(new Date(at));

/** "3 days ago", "in 2 hours", "just now". */
export function relative(at: string | number, now: number): string {
  const distance = new Date(at).getTime() - now;
  const size = Math.abs(distance);
  const unit = UNITS.find(([length]) => size >= length);
  if (!unit) return size < 10 * SECOND || distance < 0 ? 'just now' : 'in a moment';
  const count = Math.floor(size / unit[0]);
  const text = `${count} ${unit[1]}${count === 1 ? '' : 's'}`;
  return distance < 0 ? `${text} ago` : `in ${text}`;
}

/** "2026-11-12", as the API takes days. */
export const isoDay = (at: number) => new Date(at).toISOString().slice(0, 10);

/** Returns the first day of the month that is `months` before the one of `now`. */
export function monthStart(now: number, months = 0): number {
  const date = new Date(now);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months, 1);
}

/** Returns the first and the last day of the month of a day. */
export function monthSpan(date: string): { from: string; to: string } {
  const at = Date.parse(date);
  return { from: isoDay(monthStart(at)), to: isoDay(monthStart(at, -1) - DAY) };
}

/** Returns the first instant of a day, as a lower bound of a filter. */
export const startOf = (date: string | undefined) => date && `${date}T00:00:00Z`;

/** Returns the first instant after a day, as an upper bound of a filter. */
export const endOf = (date: string | undefined) =>
  date && `${isoDay(Date.parse(date) + DAY)}T00:00:00Z`;
