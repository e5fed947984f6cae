// The life of a subscription. Every change also sends `subscription_updated`.

import { addIntervals } from '../stand_in/clock.mjs';
import { unprocessable } from './errors.mjs';
import { createInvoice } from './resources/subscription_invoices.mjs';
import { createOrder } from './resources/orders.mjs';

const DAY = 86_400;
/** Days from one failed attempt to the next. After the last one the subscription is unpaid. */
const RETRY_DAYS = [3, 5, 7];

/** Sells a variant, as a paid checkout does. Returns the order, and the subscription if the variant is one. */
export function sell(shop, { customer, variant, quantity = 1, custom, currency, price = variant.price }) {
  const now = shop.now();
  const isSubscription = variant.interval !== null;
  const trialEnd = variant.trial_interval ? addIntervals(now, variant.trial_interval, variant.trial_interval_count) : null;
  const total = trialEnd === null || !isSubscription ? price * quantity : 0;
  const { order, item } = createOrder(shop, { customer, variant, quantity, total, currency, custom });
  shop.emit('order_created', order, custom);
  if (!isSubscription) return { order };
  const subscription = shop.insert('subscriptions', {
    store_id: order.store_id,
    customer_id: customer.id,
    order_id: order.id,
    order_item_id: item.id,
    product_id: item.product_id,
    variant_id: variant.id,
    user_name: customer.name,
    user_email: customer.email,
    currency,
    price,
    quantity,
    custom,
    status: trialEnd === null ? 'active' : 'on_trial',
    pause: null,
    cancelled: false,
    trial_ends_at: trialEnd,
    anchor: trialEnd ?? now,
    renews_at: trialEnd ?? addIntervals(now, variant.interval, variant.interval_count),
    period_ends_at: trialEnd ?? addIntervals(now, variant.interval, variant.interval_count),
    ends_at: null,
    failures: 0,
  });
  const invoice = createInvoice(shop, subscription, { billing_reason: 'initial', status: 'paid', total });
  shop.emit('subscription_created', subscription, custom);
  shop.emit('subscription_payment_success', invoice, custom);
  return { order, subscription, invoice };
}

function nextPeriodEnd(shop, subscription) {
  const { interval, interval_count } = shop.find('variants', subscription.variant_id);
  for (let count = 1; ; count += 1) {
    const end = addIntervals(subscription.anchor, interval, interval_count * count);
    if (end > subscription.period_ends_at) return end;
  }
}

function notify(shop, subscription, ...names) {
  for (const name of names) shop.emit(name, subscription, subscription.custom);
  shop.emit('subscription_updated', subscription, subscription.custom);
  return subscription;
}

/** Starts the next period and charges it. */
export function renewSubscription(shop, subscription, outcome = shop.outcomes.get(subscription.id) ?? 'succeed') {
  const total = subscription.price * subscription.quantity;
  const isPaid = outcome === 'succeed';
  const invoice = createInvoice(shop, subscription, { billing_reason: 'renewal', status: isPaid ? 'paid' : 'pending', total });
  if (!isPaid) return fail(shop, subscription, invoice);
  const period_ends_at = nextPeriodEnd(shop, subscription);
  shop.change(subscription, { status: 'active', failures: 0, period_ends_at, renews_at: period_ends_at });
  shop.emit('subscription_payment_success', invoice, subscription.custom);
  return notify(shop, subscription);
}

/** Records a failed attempt. `renews_at` of a subscription that is past due is the next attempt. */
function fail(shop, subscription, invoice) {
  const days = RETRY_DAYS[subscription.failures];
  const failures = subscription.failures + 1;
  const fields = days === undefined ? { status: 'unpaid' } : { status: 'past_due', renews_at: shop.now() + days * DAY };
  shop.change(subscription, { ...fields, failures });
  shop.emit('subscription_payment_failed', invoice, subscription.custom);
  return notify(shop, subscription);
}

/** Retries the pending invoice. */
export function retryPayment(shop, subscription, outcome = shop.outcomes.get(subscription.id) ?? 'succeed') {
  const invoice = shop
    .all('subscription-invoices', 'subscription_id', subscription.id)
    .findLast(({ status }) => status === 'pending');
  if (!invoice) throw unprocessable('/data', 'The subscription has no pending invoice.');
  if (outcome !== 'succeed') return fail(shop, subscription, invoice);
  shop.change(invoice, { status: 'paid' });
  const period_ends_at = nextPeriodEnd(shop, subscription);
  shop.change(subscription, { status: 'active', failures: 0, period_ends_at, renews_at: period_ends_at });
  shop.emit('subscription_payment_success', invoice, subscription.custom);
  shop.emit('subscription_payment_recovered', invoice, subscription.custom);
  return notify(shop, subscription);
}

export function cancelSubscription(shop, subscription) {
  if (subscription.status === 'expired') throw unprocessable('/data', 'An expired subscription cannot be cancelled.');
  if (subscription.cancelled) return subscription;
  const isDue = ['past_due', 'unpaid'].includes(subscription.status);
  shop.change(subscription, {
    status: 'cancelled',
    cancelled: true,
    pause: null,
    ends_at: isDue ? shop.now() : subscription.period_ends_at,
  });
  return notify(shop, subscription, 'subscription_cancelled');
}

export function resumeSubscription(shop, subscription) {
  if (!subscription.cancelled) return subscription;
  const isTrial = subscription.trial_ends_at !== null && subscription.trial_ends_at > shop.now();
  shop.change(subscription, { status: isTrial ? 'on_trial' : 'active', cancelled: false, ends_at: null });
  return notify(shop, subscription, 'subscription_resumed');
}

export function pauseSubscription(shop, subscription, pause) {
  shop.change(subscription, { status: 'paused', pause });
  return notify(shop, subscription, 'subscription_paused');
}

export function unpauseSubscription(shop, subscription) {
  if (subscription.pause === null) return subscription;
  shop.change(subscription, { status: 'active', pause: null });
  return notify(shop, subscription, 'subscription_unpaused');
}

export function expireSubscription(shop, subscription) {
  shop.change(subscription, { status: 'expired', ends_at: subscription.ends_at ?? shop.now() });
  return notify(shop, subscription, 'subscription_expired');
}

/** Changes the variant. The difference is invoiced now, or, in this stand-in, not at all. */
export function changeVariant(shop, subscription, variant, { isInvoiced }) {
  const difference = (variant.price - subscription.price) * subscription.quantity;
  shop.change(subscription, { variant_id: variant.id, product_id: variant.product_id, price: variant.price });
  if (isInvoiced && difference > 0) {
    const invoice = createInvoice(shop, subscription, { billing_reason: 'updated', status: 'paid', total: difference });
    shop.emit('subscription_payment_success', invoice, subscription.custom);
  }
  return notify(shop, subscription);
}

/** Returns the time at which something happens to a subscription without a request, or undefined. */
export function dueAt(subscription) {
  if (['expired', 'unpaid'].includes(subscription.status)) return undefined;
  if (subscription.status === 'cancelled') return subscription.ends_at;
  if (subscription.status === 'paused') return subscription.pause.resumes_at ?? undefined;
  return subscription.renews_at;
}

export function runDue(shop, subscription) {
  if (subscription.status === 'cancelled') expireSubscription(shop, subscription);
  else if (subscription.status === 'paused') resumePaused(shop, subscription);
  else if (subscription.status === 'past_due') retryPayment(shop, subscription);
  else renewSubscription(shop, subscription);
  return [subscription];
}

/** Ends a pause. Periods that passed meanwhile are not charged. */
function resumePaused(shop, subscription) {
  while (subscription.period_ends_at <= shop.now()) subscription.period_ends_at = nextPeriodEnd(shop, subscription);
  subscription.renews_at = subscription.period_ends_at;
  unpauseSubscription(shop, subscription);
}
