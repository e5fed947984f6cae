import { DAY, month, monthTick } from './time';

type Span = { from: string; to: string };

const dayMonth = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'UTC',
  day: 'numeric',
  month: 'short',
});
const days = ({ from, to }: Span) => (Date.parse(to) - Date.parse(from)) / DAY + 1;
const isMonth = ({ from, to }: Span) => from.slice(0, 7) === to.slice(0, 7) && from.endsWith('-01');
const format = (at: string) => dayMonth.format(new Date(at)).replace('Sept', 'Sep');

/** Returns the label of an interval on an axis: "Nov", or its first day. */
export const intervalTick = (span: Span) =>
  isMonth(span) && days(span) > 7 ? monthTick(span.from) : format(span.from);

/** Returns an interval in words: "November 2026", "12 Nov" or "9 Nov – 15 Nov". */
export function intervalName(span: Span): string {
  if (isMonth(span) && days(span) > 7) return month(span.from);
  return days(span) === 1 ? format(span.from) : `${format(span.from)} – ${format(span.to)}`;
}
