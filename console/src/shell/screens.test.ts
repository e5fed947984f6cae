import { expect, test } from 'vitest';
import { entryOf } from './screens';

test('a route belongs to the entry with its first segments', () => {
  expect(entryOf('/')?.label).toBe('Overview');
  expect(entryOf('/revenue/changes')?.label).toBe('Revenue');
  expect(entryOf('/subscribers/$id')?.label).toBe('Subscribers');
  expect(entryOf('/payment-accounts')?.label).toBe('Payment accounts');
  expect(entryOf('/sandbox')).toBeUndefined();
});
