// Billing periods: the start of a subscription, renewals, ends of trials, and everything else that becomes due with time.

import { addIntervals } from '../../stand_in/clock.mjs';
import { cancelSubscription } from './cancel.mjs';
import { createInvoice, finalizeInvoice, markUncollectible, payInvoice, voidInvoice } from './invoicing.mjs';
import { expireSession } from './checkout.mjs';
import { copy } from '../ledger.mjs';

const DAY = 86_400;
const INCOMPLETE_TTL = 23 * 3600;
/** Seconds before the end of a trial at which `customer.subscription.trial_will_end` is sent. */
export const TRIAL_REMINDER = 3 * DAY;

/** Returns the end of the period that starts at `start`, counted from the billing cycle anchor so that month ends stay. */
export function periodEnd(ledger, subscription, start) {
  const { interval, interval_count } = ledger.prices.get(subscription.items[0].price);
  for (let count = 1; ; count += 1) {
    const end = addIntervals(subscription.billing_cycle_anchor, interval, interval_count * count);
    if (end > start) return end;
  }
}

/** Invoices the current period. */
export function invoicePeriod(ledger, subscription, billing_reason, { isFree = false } = {}) {
  const period = { start: subscription.current_period_start, end: subscription.current_period_end };
  const lines = subscription.items.map((item) => {
    const price = ledger.prices.get(item.price);
    return {
      amount: isFree ? 0 : price.unit_amount * item.quantity,
      description: isFree ? 'Trial period' : `${item.quantity} × ${ledger.products.get(price.product).name}`,
      price: price.id,
      quantity: item.quantity,
      period,
      subscription_item: item.id,
      proration: false,
    };
  });
  return invoiceLines(ledger, subscription, [...subscription.pending_lines.splice(0), ...lines], billing_reason);
}

export function invoiceLines(ledger, subscription, lines, billing_reason) {
  const customer = ledger.customers.get(subscription.customer);
  const invoice = createInvoice(ledger, {
    customer,
    subscription,
    lines,
    billing_reason,
    currency: subscription.currency,
    period_start: billing_reason === 'subscription_cycle' ? (subscription.previous_period_start ?? ledger.now()) : ledger.now(),
    due_date: subscription.days_until_due === null ? null : ledger.now() + subscription.days_until_due * DAY,
  });
  subscription.latest_invoice = invoice.id;
  return invoice;
}

/** Starts the next period and collects its invoice as `pause_collection` says. */
export function renewSubscription(ledger, subscription) {
  const before = copy(subscription);
  const start = subscription.current_period_end;
  const isTrialEnd = subscription.status === 'trialing';
  if (isTrialEnd) subscription.billing_cycle_anchor = start;
  Object.assign(subscription, {
    previous_period_start: subscription.current_period_start,
    current_period_start: start,
    current_period_end: periodEnd(ledger, subscription, start),
    status: isTrialEnd ? 'active' : subscription.status,
  });
  const invoice = invoicePeriod(ledger, subscription, 'subscription_cycle');
  ledger.emit('customer.subscription.updated', subscription, before);
  collectRenewal(ledger, subscription, invoice);
  return invoice;
}

function collectRenewal(ledger, subscription, invoice) {
  const behavior = subscription.pause_collection?.behavior;
  if (behavior === 'keep_as_draft' || subscription.status === 'unpaid') {
    invoice.auto_advance = false;
    return;
  }
  finalizeInvoice(ledger, invoice);
  if (invoice.status !== 'open') return;
  if (behavior === 'void') voidInvoice(ledger, invoice);
  else if (behavior === 'mark_uncollectible') markUncollectible(ledger, invoice);
  else if (subscription.collection_method === 'charge_automatically') payInvoice(ledger, invoice);
}

/** Ends the trial now. Without a payment method, the trial settings decide. */
export function endTrial(ledger, subscription) {
  const customer = ledger.customers.get(subscription.customer);
  const hasMethod =
    subscription.default_payment_method ?? customer.default_payment_method ?? ledger.outcomes.get(subscription.id);
  if (!hasMethod && subscription.missing_payment_method === 'pause') {
    const fields = { status: 'paused', trial_end: ledger.now(), current_period_end: ledger.now() };
    return ledger.change(subscription, fields, 'customer.subscription.paused');
  }
  if (!hasMethod && subscription.missing_payment_method === 'cancel') return cancelSubscription(ledger, subscription);
  subscription.current_period_end = ledger.now();
  subscription.trial_end = ledger.now();
  return renewSubscription(ledger, subscription);
}

/** Returns the time at which something happens to a record without a request, or undefined. */
export function dueAt(record) {
  if (record.object === 'invoice') return record.status === 'open' ? (record.next_payment_attempt ?? undefined) : undefined;
  if (record.object === 'checkout.session') return record.status === 'open' ? record.expires_at : undefined;
  if (['canceled', 'incomplete_expired'].includes(record.status)) return undefined;
  if (record.status === 'incomplete') return record.created + INCOMPLETE_TTL;
  const times = [record.cancel_at, record.pause_collection?.resumes_at];
  if (record.status !== 'paused') times.push(record.current_period_end);
  if (record.status === 'trialing' && !record.trial_reminder_sent) times.push(record.trial_end - TRIAL_REMINDER);
  return times.filter((time) => time != null).reduce((least, time) => Math.min(least, time), Infinity);
}

/** Does what is due for a record now. Returns the records whose due time may have changed. */
export function runDue(ledger, record) {
  const now = ledger.now();
  if (record.object === 'invoice') {
    payInvoice(ledger, record);
    return [record];
  }
  if (record.object === 'checkout.session') {
    expireSession(ledger, record);
    return [];
  }
  if (record.status === 'incomplete') {
    const invoice = ledger.invoices.get(record.latest_invoice);
    if (invoice.status === 'open') voidInvoice(ledger, invoice);
    ledger.change(record, { status: 'incomplete_expired', ended_at: now }, 'customer.subscription.updated');
    return [];
  }
  if (record.cancel_at !== null && record.cancel_at <= now) {
    cancelSubscription(ledger, record);
  } else if (record.pause_collection?.resumes_at != null && record.pause_collection.resumes_at <= now) {
    ledger.change(record, { pause_collection: null }, 'customer.subscription.updated');
  } else if (record.status === 'trialing' && !record.trial_reminder_sent && record.trial_end > now) {
    record.trial_reminder_sent = true;
    ledger.emit('customer.subscription.trial_will_end', record);
  } else if (record.status === 'trialing') {
    endTrial(ledger, record);
  } else {
    renewSubscription(ledger, record);
  }
  const latest = ledger.invoices.get(record.latest_invoice);
  return latest ? [record, latest] : [record];
}
