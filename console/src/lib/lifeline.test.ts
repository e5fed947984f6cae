import { expect, test } from 'vitest';
import { effect, labelDots, layOut, placeMarkers, rangeOf, type Segment } from './lifeline';
import { DAY } from './time';

const now = Date.parse('2026-11-16T09:00:00Z');
const segment = (from: string, to: string | null, status: string, more = {}): Segment => ({
  from: `${from}T00:00:00Z`,
  to: to && `${to}T00:00:00Z`,
  status,
  is_active: true,
  future: false,
  ...more,
});
const pastDue = [
  segment('2026-05-12', '2026-06-12', 'on_trial'),
  segment('2026-06-12', '2026-11-12', 'active'),
  segment('2026-11-12', '2026-11-19', 'past_due'),
  segment('2026-11-19', '2026-12-12', 'unpaid', { future: true, is_active: false }),
  segment('2026-12-12', null, 'expired', { future: true, is_active: false }),
];

test('the range covers all segments and the present', () => {
  const [from, to] = rangeOf(pastDue, now, 800, false);
  expect(from).toBeLessThan(Date.parse('2026-05-12'));
  expect(to).toBeGreaterThan(Date.parse('2026-12-12'));
});

test('a long history starts later, unless all of it is asked for', () => {
  const long = [segment('2020-01-01', null, 'active')];
  const [from] = rangeOf(long, now, 620, false);
  expect(now - from).toBeGreaterThan(270 * DAY);
  expect(now - from).toBeLessThan(310 * DAY);
  expect(rangeOf(long, now, 620, true)[0]).toBeLessThan(Date.parse('2020-01-01'));
});

test('the end of access is named after a segment with access', () => {
  const [active, expired] = [pastDue[1], pastDue[4]];
  expect(effect(expired!, active)).toBe('access ends');
  expect(effect(expired!, pastDue[3])).toBe('expires');
});

test('labels of markers never overlap in a lane', () => {
  const markers = placeMarkers(
    [
      { x: 110, label: 'access ends 19 Nov' },
      { x: 140, label: 'expires 12 Dec' },
      { x: 395, label: 'expires 12 Dec' },
    ],
    400,
  );
  expect(markers.map(({ lane }) => lane)).toEqual([0, 1, 0]);
  expect(markers[2]?.anchor).toBe('end');
});

const dot = (id: string, x: number, status: string) => ({
  payment: { id, at: '', amount: 1, status },
  x,
  label: '19.99',
});

test('a failed payment keeps its label beside completed ones', () => {
  const dots = labelDots([dot('a', 100, 'completed'), dot('b', 110, 'failed')], 400);
  expect(dots.map(({ label }) => label)).toEqual([null, '19.99']);
});

test('bars are contiguous and end at the edge', () => {
  const { bars, markers, ticks } = layOut({
    segments: pastDue,
    payments: [],
    now,
    width: 800,
    showAll: false,
    word: (status) => status,
    paymentLabel: () => '',
  });
  bars.slice(1).forEach((bar, index) => {
    const before = bars[index]!;
    expect(bar.x).toBeCloseTo(before.x + before.width);
  });
  expect(bars.at(-1)!.x + bars.at(-1)!.width).toBeCloseTo(800);
  expect(markers.map(({ label }) => label)).toEqual(['access ends 19 Nov', 'expires 12 Dec']);
  expect(ticks.map(({ label }) => label)).toContain('Jun');
});

test('the label of a payment at the edge stays inside', () => {
  const [first] = labelDots([dot('a', 0, 'completed')], 400);
  expect(first?.label).toBe('19.99');
  expect(first?.labelX).toBeGreaterThan(10);
});
