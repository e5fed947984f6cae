import { expect, test } from 'vitest';
import { day, exact, monthStart, monthTick, relative } from './time';

const now = Date.parse('2026-11-16T09:41:00Z');

test('exact shows UTC with seconds', () => {
  expect(exact('2026-09-02T07:05:03.123456Z')).toBe('2 Sep 2026, 07:05:03 UTC');
});

test('exact converts an offset to UTC', () => {
  expect(exact('2026-11-16T01:00:00+02:00')).toBe('15 Nov 2026, 23:00:00 UTC');
});

test('day has the year only if it is another one', () => {
  expect(day('2026-11-12T23:59:59Z', now)).toBe('12 Nov');
  expect(day('2025-12-31T23:59:59Z', now)).toBe('31 Dec 2025');
});

test('monthTick has the year in January', () => {
  expect(monthTick('2026-09-01')).toBe('Sep');
  expect(monthTick('2027-01-01')).toBe('Jan ’27');
});

test.each([
  ['2026-11-16T09:40:55Z', 'just now'],
  ['2026-11-16T09:41:30Z', 'in a moment'],
  ['2026-11-16T09:40:00Z', '1 minute ago'],
  ['2026-11-16T07:41:00Z', '2 hours ago'],
  ['2026-11-19T09:41:00Z', 'in 3 days'],
  ['2026-11-19T09:40:59Z', 'in 2 days'],
  ['2026-08-16T09:41:00Z', '3 months ago'],
  ['2024-11-15T09:41:00Z', '2 years ago'],
])('relative(%s) is %s', (at, text) => {
  expect(relative(at, now)).toBe(text);
});

test('monthStart crosses years', () => {
  expect(new Date(monthStart(now, 12)).toISOString()).toBe('2025-11-01T00:00:00.000Z');
});
