// Loads many customers, subscriptions and invoices, without events.

import { addIntervals } from '../stand_in/clock.mjs';
import { createCustomer } from './resources/customers.mjs';

const STATUSES = [
  'active',
  'active',
  'active',
  'active',
  'active',
  'active',
  'trialing',
  'past_due',
  'unpaid',
  'paused',
  'canceled',
  'canceled',
];
const CURRENCIES = { usd: 1999, eur: 1999, jpy: 1500, kwd: 5120, isk: 150_000, ugx: 500_000, mga: 45_000 };
/** What the balance has paid of a credited invoice, in minor units. */
const CREDIT = 500;
const MAX_RECORDS = 2_000_000;

/**
 * Creates customers with one subscription each, and invoices that are spread evenly over them, the latest in the current
 * period. The content depends only on the arguments and the clock; identifiers are random.
 */
export function loadBulk(ledger, { subscriptions = 0, invoices = 0, customers = subscriptions, currencies = ['usd'] }) {
  if (customers + subscriptions + invoices > MAX_RECORDS) throw new Error(`at most ${MAX_RECORDS} records`);
  if (customers < subscriptions) throw new Error('customers must not be fewer than subscriptions');
  const prices = currencies.map((currency) => createBulkPrice(ledger, currency));
  const now = ledger.now();
  const perSubscription = subscriptions ? Math.floor(invoices / subscriptions) : 0;
  const rest = invoices - perSubscription * subscriptions;
  for (let at = 0; at < customers; at += 1) {
    const customer = createCustomer(
      ledger,
      {
        email: `bulk-${at}@example.com`,
        name: `Bulk ${at}`,
        created: now - 2 * 365 * 86_400 + at,
      },
      null,
    );
    customer.default_payment_method = ledger.insert('pm', { customer: customer.id, outcome: 'succeed' }).id;
    if (at >= subscriptions) continue;
    const count = perSubscription + (at < rest ? 1 : 0);
    // Independent of the currency.
    const variant = Math.floor(at / prices.length);
    const subscription = createBulkSubscription(ledger, { customer, price: prices[at % prices.length], at, variant, count });
    for (let index = 0; index < count; index += 1) createBulkInvoice(ledger, { customer, subscription, index, count, variant });
  }
  return { customers, subscriptions, invoices };
}

function createBulkPrice(ledger, currency) {
  const unit_amount = CURRENCIES[currency];
  if (!unit_amount) throw new Error(`currencies must be among ${Object.keys(CURRENCIES).join(', ')}`);
  const product = ledger.insert('prod', {
    name: `Bulk ${currency.toUpperCase()}`,
    active: true,
    description: null,
    metadata: {},
    default_price: null,
    updated: ledger.now(),
  });
  return ledger.insert('price', {
    product: product.id,
    currency,
    unit_amount,
    interval: 'month',
    interval_count: 1,
    active: true,
    nickname: null,
    lookup_key: null,
    metadata: {},
  });
}

function createBulkSubscription(ledger, { customer, price, at, variant, count }) {
  const now = ledger.now();
  const status = STATUSES[variant % STATUSES.length];
  const isEnded = status === 'canceled';
  // Half a day apart, so that periods end at different times.
  const anchor = addIntervals(now - (at % 50) * 43_200 - 3600, 'month', -(Math.max(count, 1) - 1));
  const start = addIntervals(anchor, 'month', Math.max(count, 1) - 1);
  const end = addIntervals(anchor, 'month', Math.max(count, 1));
  return ledger.insert('sub', {
    customer: customer.id,
    created: anchor,
    billing_cycle_anchor: anchor,
    cancel_at: null,
    cancel_at_period_end: false,
    canceled_at: isEnded ? start + 60 : null,
    cancellation: { comment: null, feedback: null, reason: isEnded ? 'cancellation_requested' : null },
    collection_method: 'charge_automatically',
    currency: price.currency,
    days_until_due: null,
    default_payment_method: null,
    description: null,
    ended_at: isEnded ? start + 60 : null,
    latest_invoice: null,
    metadata: {},
    missing_payment_method: 'create_invoice',
    pause_collection: null,
    pending_lines: [],
    start_date: anchor,
    trial_start: status === 'trialing' ? start : null,
    trial_end: status === 'trialing' ? end : null,
    items: [{ id: `si_${at}${customer.id.slice(4)}`, price: price.id, quantity: 1, metadata: {}, created: anchor }],
    current_period_start: start,
    current_period_end: end,
    status,
  });
}

function createBulkInvoice(ledger, { customer, subscription, index, count, variant }) {
  const created = addIntervals(subscription.billing_cycle_anchor, 'month', index);
  const end = addIntervals(subscription.billing_cycle_anchor, 'month', index + 1);
  const isLatest = index === count - 1;
  const isFailed = isLatest && ['past_due', 'unpaid'].includes(subscription.status);
  // One in 40 of the older invoices each is void, uncollectible, refunded, or paid in part or whole from the balance.
  const special = isLatest ? undefined : ['void', 'uncollectible', 'refunded', 'credited', 'covered'][(variant * 7 + index) % 40];
  const isPaid = !isFailed && special !== 'void' && special !== 'uncollectible';
  const isTrial = isLatest && subscription.status === 'trialing';
  const price = ledger.prices.get(subscription.items[0].price);
  const total = isTrial ? 0 : price.unit_amount;
  const credit = { credited: CREDIT, covered: total }[special] ?? 0;
  const amount_due = total - credit;
  const amount_paid = isPaid ? amount_due : 0;
  const unpaidStatus = special ?? 'open';
  const invoice = ledger.insert('in', {
    customer: customer.id,
    customer_email: customer.email,
    customer_name: customer.name,
    subscription: subscription.id,
    subscription_metadata: {},
    created,
    billing_reason: index === 0 ? 'subscription_create' : 'subscription_cycle',
    collection_method: 'charge_automatically',
    currency: price.currency,
    description: null,
    due_date: null,
    metadata: {},
    period_start: created,
    period_end: created,
    auto_advance: true,
    lines: [
      {
        id: `il_${index}${subscription.id.slice(4)}`,
        amount: total,
        description: null,
        price: price.id,
        quantity: 1,
        period: { start: created, end },
        subscription_item: subscription.items[0].id,
        proration: false,
      },
    ],
    total,
    amount_due,
    amount_paid,
    starting_balance: credit === 0 ? 0 : -credit,
    ending_balance: 0,
    attempt_count: amount_due === 0 ? 0 : 1,
    attempted: true,
    next_payment_attempt: null,
    number: `${customer.invoice_prefix}-${String(customer.next_invoice).padStart(4, '0')}`,
    payment_intent: null,
    charge: null,
    status: isPaid ? 'paid' : unpaidStatus,
    finalized_at: created,
    paid_at: isPaid ? created : null,
    voided_at: special === 'void' ? created : null,
    marked_uncollectible_at: special === 'uncollectible' ? created : null,
  });
  customer.next_invoice += 1;
  customer.currency ??= price.currency;
  subscription.latest_invoice = invoice.id;
  if (amount_due > 0) createBulkPayment(ledger, invoice, { created, isPaid, isRefunded: special === 'refunded' });
}

function createBulkPayment(ledger, invoice, { created, isPaid, isRefunded }) {
  const { amount_due: amount, currency, customer } = invoice;
  const intent = ledger.insert('pi', {
    created,
    amount,
    currency,
    customer,
    description: null,
    metadata: {},
    invoice: invoice.id,
    payment_method: null,
    latest_charge: null,
    status: isPaid ? 'succeeded' : 'requires_payment_method',
    amount_received: isPaid ? amount : 0,
    amount_capturable: 0,
    capture_method: 'automatic',
    canceled_at: null,
    cancellation_reason: null,
    last_payment_error: null,
    client_secret: null,
  });
  const charge = ledger.insert('ch', {
    created,
    amount,
    amount_captured: isPaid ? amount : 0,
    amount_refunded: isRefunded ? amount : 0,
    captured: isPaid,
    currency,
    customer,
    description: null,
    disputed: false,
    failure_code: isPaid ? null : 'card_declined',
    failure_message: isPaid ? null : 'Your card was declined.',
    invoice: invoice.id,
    metadata: {},
    paid: isPaid,
    payment_intent: intent.id,
    payment_method: null,
    refunded: isRefunded,
    status: isPaid ? 'succeeded' : 'failed',
  });
  ledger.insert('inpay', {
    created,
    amount_paid: isPaid ? amount : null,
    amount_requested: amount,
    currency,
    invoice: invoice.id,
    payment_intent: intent.id,
    status: isPaid ? 'paid' : 'open',
    paid_at: isPaid ? created : null,
    canceled_at: null,
  });
  if (isRefunded) {
    ledger.insert('re', {
      created,
      amount,
      charge: charge.id,
      currency,
      customer,
      metadata: {},
      payment_intent: intent.id,
      reason: null,
      status: 'succeeded',
    });
  }
  intent.latest_charge = charge.id;
  Object.assign(invoice, { payment_intent: intent.id, charge: charge.id });
}
