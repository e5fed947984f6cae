import { expect, test } from 'vitest';
import type { LoggedEvent } from './log';
import { changesOf, summaryOf } from './words';

const event = (data: object, previous?: object) =>
  ({ type: 'subscription.updated', data, previous }) as LoggedEvent;

test('the changes of an event are the fields with a previous value', () => {
  const changed = event({ status: 'active', ends_at: null, slug: 'basic' }, { status: 'on_trial' });
  expect(changesOf(changed)).toEqual([{ field: 'status', before: 'on_trial', after: 'active' }]);
  expect(changesOf(event({ status: 'active' }))).toEqual([]);
  const paid = event({ credit: 399.8, quantity: 2, currency: 'USD' }, { credit: 0, quantity: 1 });
  expect(changesOf(paid)).toEqual([
    { field: 'credit', before: '0.00', after: '399.80' },
    { field: 'quantity', before: 1, after: 2 },
  ]);
});

test('the summary names two fields with their old and new values', () => {
  const after = { status: 'active', ends_at: null, metadata: { a: 1 }, updated_at: '2026' };
  const before = {
    status: 'on_trial',
    ends_at: '2026-11-15T00:00:00Z',
    metadata: {},
    updated_at: '2025',
  };
  expect(summaryOf(event(after, before))).toBe(
    'status on_trial → active, ends at 15\u00a0Nov\u00a02026 → –, 1 more',
  );
});

test('the summary leaves out the content of objects', () => {
  expect(summaryOf(event({ metadata: { a: 1 } }, { metadata: {} }))).toBe('metadata');
});
