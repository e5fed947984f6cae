// The start of a subscription.

import { newId } from '../ids.mjs';
import { cardError, invalid } from '../errors.mjs';
import { finalizeInvoice, payInvoice } from './invoicing.mjs';
import { invoicePeriod, periodEnd, runDue, TRIAL_REMINDER } from './cycle.mjs';
import { paymentOutcome } from './payments.mjs';

const DAY = 86_400;

/** Creates a subscription, its first invoice, and attempts to collect it. `items` has prices and quantities. */
export function startSubscription(ledger, { customer, items, trial_period_days, trial_end, payment_behavior, ...fields }) {
  const now = ledger.now();
  const prices = items.map(({ price }) => ledger.prices.get(price));
  if (prices.some(({ interval }) => interval === null)) {
    throw invalid('The price specified is set to `type=one_time` but this field only accepts prices with `type=recurring`.', {
      param: 'items[0][price]',
    });
  }
  const trialEnd = trial_end ?? (trial_period_days ? now + trial_period_days * DAY : null);
  const isFree = trialEnd !== null || items.every(({ quantity }, at) => prices[at].unit_amount * quantity === 0);
  const method = ledger.payment_methods.get(fields.default_payment_method ?? customer.default_payment_method);
  const isAutomatic = (fields.collection_method ?? 'charge_automatically') === 'charge_automatically';
  const isDeferred = payment_behavior === 'default_incomplete';
  if (isAutomatic && !isFree && !isDeferred && !method && !ledger.outcomes.has(customer.id)) {
    throw invalid(
      'This customer has no attached payment source or default payment method. Please consider adding a default payment method.',
      { code: 'resource_missing' },
    );
  }
  const outcome = paymentOutcome(ledger, { customer: customer.id, method });
  if (payment_behavior === 'error_if_incomplete' && !isFree && outcome !== 'succeed') {
    throw cardError('Your card was declined.', { code: 'card_declined', decline_code: 'generic_decline' });
  }
  const subscription = ledger.insert('sub', {
    customer: customer.id,
    billing_cycle_anchor: trialEnd ?? now,
    cancel_at: null,
    cancel_at_period_end: false,
    canceled_at: null,
    cancellation: { comment: null, feedback: null, reason: null },
    collection_method: 'charge_automatically',
    currency: prices[0].currency,
    days_until_due: null,
    default_payment_method: null,
    description: null,
    ended_at: null,
    latest_invoice: null,
    metadata: {},
    missing_payment_method: 'create_invoice',
    pause_collection: null,
    pending_lines: [],
    start_date: now,
    trial_start: trialEnd === null ? null : now,
    trial_end: trialEnd,
    ...fields,
    items: items.map(({ price, quantity, metadata = {} }) => ({ id: newId('si', 14), price, quantity, metadata, created: now })),
    current_period_start: now,
    current_period_end: trialEnd,
    status: initialStatus({ trialEnd, isFree, isAutomatic }),
  });
  subscription.current_period_end ??= periodEnd(ledger, subscription, now);
  customer.currency ??= subscription.currency;
  const invoice = invoicePeriod(ledger, subscription, 'subscription_create', { isFree: trialEnd !== null });
  ledger.emit('customer.subscription.created', subscription);
  if (trialEnd !== null && trialEnd - now <= TRIAL_REMINDER) runDue(ledger, subscription);
  finalizeInvoice(ledger, invoice);
  if (invoice.status === 'open' && isAutomatic && !isDeferred) payInvoice(ledger, invoice);
  return subscription;
}

function initialStatus({ trialEnd, isFree, isAutomatic }) {
  if (trialEnd !== null) return 'trialing';
  return isFree || !isAutomatic ? 'active' : 'incomplete';
}
