// Loads many customers, subscriptions and invoices, without events.

import { addIntervals } from '../stand_in/clock.mjs';
import { createOrder } from './resources/orders.mjs';
import { createProduct } from './resources/products.mjs';
import { createInvoice } from './resources/subscription_invoices.mjs';

const STATUSES = [
  'active',
  'active',
  'active',
  'active',
  'active',
  'active',
  'on_trial',
  'past_due',
  'unpaid',
  'paused',
  'cancelled',
  'expired',
];
const CURRENCIES = { USD: 1999, EUR: 1999, JPY: 1500, KWD: 5120, ISK: 1500, UGX: 5000, MGA: 45_000 };
const MAX_RECORDS = 2_000_000;

/** Creates customers with one subscription each, and invoices that are spread evenly over them. */
export function loadBulk(shop, { subscriptions = 0, invoices = 0, currencies = ['USD'] }) {
  if (2 * subscriptions + invoices > MAX_RECORDS) throw new Error(`at most ${MAX_RECORDS} records`);
  const unknown = currencies.find((currency) => !CURRENCIES[currency]);
  if (unknown) throw new Error(`currencies must be among ${Object.keys(CURRENCIES).join(', ')}`);
  const store = shop.all('stores')[0];
  const {
    variants: [variant],
  } = createProduct(shop, {
    store_id: store.id,
    name: 'Bulk',
    variants: [{ name: 'Monthly', price: 1999, interval: 'month' }],
  });
  const perSubscription = subscriptions ? Math.floor(invoices / subscriptions) : 0;
  const rest = invoices - perSubscription * subscriptions;
  for (let at = 0; at < subscriptions; at += 1) {
    const count = perSubscription + (at < rest ? 1 : 0);
    createHistory(shop, {
      variant,
      at,
      count,
      store,
      currency: currencies[at % currencies.length],
      status: STATUSES[Math.floor(at / currencies.length) % STATUSES.length],
    });
  }
  return { customers: subscriptions, subscriptions, invoices };
}

function createHistory(shop, { variant, at, count, store, currency, status }) {
  const now = shop.now();
  const periods = Math.max(count, 1);
  // Half a day apart, so that periods end at different times.
  const created_at = addIntervals(now - (at % 50) * 43_200 - 3600, 'month', -(periods - 1));
  const period_ends_at = addIntervals(created_at, 'month', periods);
  const customer = shop.insert('customers', {
    store_id: store.id,
    email: `bulk-${at}@example.com`,
    name: `Bulk ${at}`,
    status: 'subscribed',
    created_at,
    updated_at: created_at,
  });
  const price = CURRENCIES[currency];
  const { order, item } = createOrder(shop, {
    customer,
    variant,
    quantity: 1,
    total: count > 0 ? price : 0,
    currency,
    created_at,
  });
  const subscription = shop.insert('subscriptions', {
    store_id: store.id,
    customer_id: customer.id,
    order_id: order.id,
    order_item_id: item.id,
    product_id: item.product_id,
    variant_id: variant.id,
    user_name: customer.name,
    user_email: customer.email,
    currency,
    price,
    quantity: 1,
    custom: undefined,
    status,
    pause: status === 'paused' ? { mode: at % 2 === 0 ? 'void' : 'free', resumes_at: null } : null,
    cancelled: ['cancelled', 'expired'].includes(status),
    trial_ends_at: status === 'on_trial' ? period_ends_at : null,
    anchor: created_at,
    renews_at: period_ends_at,
    period_ends_at,
    ends_at: { cancelled: period_ends_at, expired: now - 60 }[status] ?? null,
    failures: status === 'past_due' ? 1 : 0,
    created_at,
    updated_at: created_at,
  });
  for (let index = 0; index < count; index += 1)
    createBulkInvoice(shop, { subscription, index, isLatest: index === count - 1, price });
}

function createBulkInvoice(shop, { subscription, index, isLatest, price }) {
  const created_at = addIntervals(subscription.anchor, 'month', index);
  const isFailed = isLatest && ['past_due', 'unpaid'].includes(subscription.status);
  // One in 40 of the older invoices each is void, refunded, or refunded in part.
  const special = isLatest ? undefined : ['void', 'refunded', 'partial_refund'][(Number(subscription.id) * 7 + index) % 40];
  const refunded_amount = { refunded: price, partial_refund: 1 }[special] ?? 0;
  createInvoice(shop, subscription, {
    billing_reason: index === 0 ? 'initial' : 'renewal',
    status: isFailed ? 'pending' : (special ?? 'paid'),
    total: price,
    refunded: refunded_amount > 0,
    refunded_at: refunded_amount > 0 ? created_at : null,
    refunded_amount,
    created_at,
    updated_at: created_at,
  });
}
