import { amount } from '../../../lib/money';
import { dayOfYear, exact } from '../../../lib/time';
import type { LoggedEvent } from './log';

/** The records that events are about, with what can happen to them. */
export const EVENT_TYPES: Record<string, string[]> = {
  subscription: [
    'created',
    'updated',
    'renewed',
    'past_due',
    'unpaid',
    'expired',
    'ended',
    'deleted',
  ],
  payment: ['created', 'updated', 'deleted'],
  user: ['created', 'updated', 'email_changed', 'claimed', 'sessions_revoked', 'erased'],
  session: ['created', 'refresh_repeated', 'revoked'],
  plan: ['created', 'updated', 'deleted'],
  webhook_endpoint: ['created', 'updated', 'enabled', 'disabled', 'secret_rotated', 'deleted'],
  payment_account: ['created', 'updated', 'secret_rotated', 'deleted'],
};

/** The patterns of event types: all of a record, then each one. */
export const EVENT_PATTERNS = Object.entries(EVENT_TYPES).flatMap(([record, verbs]) =>
  ['*'].concat(verbs).map((verb) => `${record}.${verb}`),
);

const ACTORS: Record<string, string> = {
  client: 'API key',
  user: 'Subscriber',
  staff: 'Staff member',
  operator: 'Operator',
  payment_account: 'Payment provider',
  system: 'The service',
};

/** Returns what made a change, in words. */
export const actorKind = ({ type }: LoggedEvent['actor']) => ACTORS[type] ?? type;

export type Change = { field: string; before: unknown; after: unknown };

const AMOUNTS = new Set(['amount', 'amount_due', 'credit', 'price', 'refunded_amount']);

/** Returns the fields that an event has changed, amounts with all decimals of the currency. */
export function changesOf({ data, previous }: LoggedEvent): Change[] {
  const read = (field: string, value: unknown) =>
    AMOUNTS.has(field) && typeof value === 'number' && typeof data.currency === 'string'
      ? amount(value, data.currency)
      : value;
  return Object.entries(previous ?? {}).map(([field, before]) => ({
    field,
    before: read(field, before),
    after: read(field, data[field]),
  }));
}

const TIME = /^\d{4}-\d\d-\d\dT/;
const isTime = (value: unknown): value is string => typeof value === 'string' && TIME.test(value);

/** Returns a field's value as text. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  if (isTime(value)) return exact(value);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Fields that a summary names with their values. */
const MAX_VALUES = 2;

/** Returns a field's value in a summary: of a time, the day. */
const shortText = (value: unknown) => (isTime(value) ? dayOfYear(value) : valueText(value));

/** Returns what an event changed, in a line. */
export function summaryOf(event: LoggedEvent): string {
  const changes = changesOf(event).filter(({ field }) => field !== 'updated_at');
  const texts = changes.slice(0, MAX_VALUES).map(({ field, before, after }) => {
    const name = field.replaceAll('_', ' ');
    const isObject = [before, after].some((value) => typeof value === 'object' && value !== null);
    return isObject ? name : `${name} ${shortText(before)} → ${shortText(after)}`;
  });
  const others = changes.length - texts.length;
  return [...texts, ...(others > 0 ? [`${others} more`] : [])].join(', ');
}
