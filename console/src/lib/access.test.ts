import { expect, test } from 'vitest';
import type { Schema } from '../api/client';
import { accessEnd, accessLoss } from './access';

type Step = Schema<'TimelineStep'>;

const grant = (id: string, status: string, ends_at: string | null = null) =>
  ({ id, status, ends_at }) as Schema<'Grant'>;
const LOSS: Step[] = [
  { at: null, status: 'past_due', sentence: '' },
  { at: '2026-11-19T09:30:00.000000Z', status: 'unpaid', sentence: '' },
  { at: '2026-12-19T09:30:00.000000Z', status: 'expired', sentence: '' },
];
const stepsOf = (id: string) => (id === 'late' ? LOSS : []);

test('access is lost at the first step without access', () => {
  expect(accessLoss(LOSS)).toBe('2026-11-19T09:30:00.000000Z');
  expect(accessLoss([{ at: null, status: 'unpaid', sentence: '' }])).toBeNull();
});

test('access of a past due subscription ends by its forecast', () => {
  const end = { at: '2026-11-19T09:30:00.000000Z', isPayable: true };
  expect(accessEnd([grant('late', 'past_due')], stepsOf)).toEqual(end);
  expect(accessEnd([grant('late', 'past_due', '2027-01-01T00:00:00Z')], stepsOf)).toEqual(end);
});

test('access of a past due subscription ends with it, if it ends first', () => {
  const ends_at = '2026-11-18T00:00:00Z';
  const end = accessEnd([grant('late', 'past_due', ends_at)], stepsOf);
  expect(end).toEqual({ at: ends_at, isPayable: false });
});

test('access ends with the last subscription', () => {
  const ends_at = '2026-12-01T00:00:00Z';
  const late = grant('late', 'past_due');
  expect(accessEnd([late, grant('b', 'cancelled', ends_at)], stepsOf)).toEqual({
    at: ends_at,
    isPayable: false,
  });
  expect(accessEnd([late, grant('b', 'active')], stepsOf).at).toBeNull();
  expect(accessEnd([grant('b', 'past_due')], stepsOf).at).toBeNull();
});
