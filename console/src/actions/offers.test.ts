import { expect, test } from 'vitest';
import type { Schema } from '../api/client';
import { offersOf, undoOf } from './offers';

type Subscription = Schema<'Subscription'>;

const subscription = (fields: Partial<Subscription>) =>
  ({
    status: 'active',
    lifecycle: 'managed',
    suspended: false,
    is_active: true,
    renews_at: '2026-12-15T09:30:00Z',
    ends_at: null,
    ...fields,
  }) as Subscription;

const actionsOf = (fields: Partial<Subscription>) =>
  offersOf(subscription(fields)).map(({ action }) => action);

test('an active subscription can be changed, stopped and paid', () => {
  expect(actionsOf({})).toEqual([
    'record_payment',
    'change_plan',
    'extend',
    'pause',
    'suspend',
    'cancel',
  ]);
});

test('a cancelled subscription can be continued or ended', () => {
  const ends_at = '2026-12-15T09:30:00Z';
  expect(actionsOf({ status: 'cancelled', ends_at, renews_at: null })).toEqual([
    'record_payment',
    'undo_cancellation',
    'extend',
    'suspend',
    'end',
  ]);
});

test('an expired subscription can only be paid and reopened', () => {
  expect(actionsOf({ status: 'expired', is_active: false })).toEqual(['record_payment', 'reopen']);
});

test('a paused subscription gets free time only where the service does not charge it', () => {
  expect(actionsOf({ status: 'paused' })).not.toContain('extend');
  expect(actionsOf({ status: 'paused', lifecycle: 'recorded' })).toContain('extend');
});

test('a lifetime has no renewal to extend', () => {
  expect(actionsOf({ renews_at: null })).not.toContain('extend');
});

const lift = (status: Subscription['status']) =>
  offersOf(subscription({ status, suspended: true, is_active: false })).find(
    ({ action }) => action === 'lift_suspension',
  );

test('a suspension is lifted only where the status gives access', () => {
  expect(lift('active')?.reason).toBeUndefined();
  expect(lift('paused')?.reason).toBe('Possible once its status gives access again.');
});

test('what the payment provider runs is changed there, except access and cancellation', () => {
  const offers = offersOf(subscription({ lifecycle: 'provider' }));
  expect(offers.filter(({ reason }) => reason).map(({ action }) => action)).toEqual([
    'change_plan',
    'extend',
    'pause',
  ]);
});

test('a cancellation is undone as its fix says, and otherwise by the status active', () => {
  const fix = { action: 'undo_cancellation', request: { body: { status: 'on_trial' } } };
  expect(undoOf([fix as unknown as Schema<'TimelineFix'>])).toEqual({ status: 'on_trial' });
  expect(undoOf([])).toEqual({ status: 'active' });
});
