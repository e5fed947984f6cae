// The life of an invoice: draft, open, paid, void or uncollectible, and what it does to its subscription.

import { newId } from '../ids.mjs';
import { invalid } from '../errors.mjs';
import { confirmIntent, createIntent, paymentOutcome } from './payments.mjs';
import { cancelSubscription } from './cancel.mjs';
import { copy } from '../ledger.mjs';

const DAY = 86_400;
/** Days from one failed attempt to the next. After the last one the account's setting decides. */
const RETRY_DAYS = [3, 5, 7];

export function createInvoice(ledger, { customer, subscription = null, lines, ...fields }) {
  const now = ledger.now();
  const total = lines.reduce((sum, line) => sum + line.amount, 0);
  const invoice = ledger.insert(
    'in',
    {
      customer: customer.id,
      customer_email: customer.email,
      customer_name: customer.name,
      subscription: subscription?.id ?? null,
      subscription_metadata: subscription ? { ...subscription.metadata } : null,
      billing_reason: 'manual',
      collection_method: subscription?.collection_method ?? 'charge_automatically',
      description: null,
      due_date: null,
      metadata: {},
      period_start: now,
      period_end: now,
      auto_advance: true,
      ...fields,
      lines: lines.map((line) => ({ id: newId('il'), ...line })),
      total,
      amount_due: Math.max(total, 0),
      amount_paid: 0,
      starting_balance: customer.balance,
      ending_balance: null,
      attempt_count: 0,
      attempted: false,
      next_payment_attempt: null,
      number: null,
      payment_intent: null,
      charge: null,
      status: 'draft',
      finalized_at: null,
      paid_at: null,
      voided_at: null,
      marked_uncollectible_at: null,
    },
    'invoice.created',
  );
  customer.currency ??= invoice.currency;
  return invoice;
}

/**
 * Finalizes a draft, and applies the customer's balance. If nothing is due then, the invoice is paid without a payment. `paidBy` is a
 * payment that was made before.
 */
export function finalizeInvoice(ledger, invoice, { paidBy } = {}) {
  if (invoice.status !== 'draft') throw invalid("This invoice is already finalized, you can't re-finalize a non-draft invoice.");
  const now = ledger.now();
  const customer = ledger.customers.get(invoice.customer);
  const number = `${customer.invoice_prefix}-${String(customer.next_invoice).padStart(4, '0')}`;
  customer.next_invoice += 1;
  const starting_balance = customer.balance;
  // What was paid before is not taken from the balance.
  const amount_due = paidBy ? invoice.total : Math.max(invoice.total + starting_balance, 0);
  const ending_balance = starting_balance + invoice.total - amount_due;
  customer.balance = ending_balance;
  Object.assign(invoice, { amount_due, starting_balance, ending_balance });
  if (amount_due > 0) {
    const intent =
      paidBy ??
      createIntent(ledger, {
        amount: amount_due,
        currency: invoice.currency,
        customer: invoice.customer,
        invoice: invoice.id,
        description: invoice.subscription ? 'Subscription update' : 'Payment for Invoice',
      });
    if (paidBy) Object.assign(paidBy, { invoice: invoice.id });
    ledger.insert('inpay', {
      amount_paid: null,
      amount_requested: amount_due,
      currency: invoice.currency,
      invoice: invoice.id,
      payment_intent: intent.id,
      status: 'open',
      paid_at: null,
      canceled_at: null,
    });
    invoice.payment_intent = intent.id;
  }
  ledger.change(invoice, { status: 'open', number, finalized_at: now }, 'invoice.finalized');
  if (paidBy) invoice.charge = paidBy.latest_charge;
  if (paidBy || amount_due === 0) markPaid(ledger, invoice);
  return invoice;
}

/** Attempts to collect an open invoice. Returns whether it is paid. */
export function payInvoice(ledger, invoice, { method, outcome } = {}) {
  const customer = ledger.customers.get(invoice.customer);
  const chosen = method ?? defaultMethod(ledger, invoice, customer);
  const intent = ledger.payment_intents.get(invoice.payment_intent);
  const decided =
    outcome ?? paymentOutcome(ledger, { subscription: invoice.subscription, customer: customer.id, method: chosen });
  const isPaid = confirmIntent(ledger, intent, decided, chosen);
  const before = copy(invoice);
  Object.assign(invoice, { attempt_count: invoice.attempt_count + 1, attempted: true, charge: intent.latest_charge });
  if (isPaid) {
    markPaid(ledger, invoice, before);
    return true;
  }
  const days = RETRY_DAYS[invoice.attempt_count - 1];
  const isRetried = days !== undefined && invoice.auto_advance && invoice.billing_reason !== 'subscription_create';
  invoice.next_payment_attempt = isRetried ? ledger.now() + days * DAY : null;
  ledger.emit('invoice.updated', invoice, before);
  ledger.emit(decided === 'requires_action' ? 'invoice.payment_action_required' : 'invoice.payment_failed', invoice);
  followFailure(ledger, invoice);
  return false;
}

function defaultMethod(ledger, invoice, customer) {
  const subscription = ledger.subscriptions.get(invoice.subscription);
  return ledger.payment_methods.get(subscription?.default_payment_method ?? customer.default_payment_method);
}

/** Marks an open invoice as paid and lets its subscription continue. */
export function markPaid(ledger, invoice, before = copy(invoice)) {
  const now = ledger.now();
  const payment = ledger.invoice_payments.all('invoice', invoice.id)[0];
  if (payment) {
    ledger.change(payment, { status: 'paid', paid_at: now, amount_paid: invoice.amount_due }, 'invoice_payment.paid');
  }
  Object.assign(invoice, {
    status: 'paid',
    paid_at: now,
    amount_paid: invoice.amount_due,
    attempted: true,
    next_payment_attempt: null,
  });
  ledger.emit('invoice.updated', invoice, before);
  ledger.emit('invoice.paid', invoice);
  ledger.emit('invoice.payment_succeeded', invoice);
  const subscription = ledger.subscriptions.get(invoice.subscription);
  if (!subscription || subscription.latest_invoice !== invoice.id) return;
  if (['incomplete', 'past_due', 'unpaid'].includes(subscription.status)) {
    ledger.change(subscription, { status: 'active' }, 'customer.subscription.updated');
  }
}

function followFailure(ledger, invoice) {
  const subscription = ledger.subscriptions.get(invoice.subscription);
  if (!subscription || !['active', 'trialing', 'past_due'].includes(subscription.status)) return;
  if (invoice.next_payment_attempt !== null || ledger.settings.after_retries === 'past_due') {
    ledger.change(subscription, { status: 'past_due' }, 'customer.subscription.updated');
  } else if (ledger.settings.after_retries === 'unpaid') {
    ledger.change(subscription, { status: 'unpaid' }, 'customer.subscription.updated');
  } else {
    cancelSubscription(ledger, subscription, 'payment_failed');
  }
}

export function voidInvoice(ledger, invoice) {
  requireStatus(invoice, ['open', 'uncollectible'], 'void');
  const intent = ledger.payment_intents.get(invoice.payment_intent);
  if (intent) {
    const fields = { status: 'canceled', canceled_at: ledger.now(), cancellation_reason: 'void_invoice' };
    ledger.change(intent, fields, 'payment_intent.canceled');
  }
  return ledger.change(invoice, { status: 'void', voided_at: ledger.now(), next_payment_attempt: null }, 'invoice.voided');
}

export function markUncollectible(ledger, invoice) {
  requireStatus(invoice, ['open'], 'mark_uncollectible');
  const fields = { status: 'uncollectible', marked_uncollectible_at: ledger.now(), next_payment_attempt: null };
  return ledger.change(invoice, fields, 'invoice.marked_uncollectible');
}

export function requireStatus(invoice, statuses, action) {
  if (!statuses.includes(invoice.status)) {
    throw invalid(
      `You can only ${action} an invoice with the status ${statuses.join(' or ')}. This invoice's status is ${invoice.status}.`,
    );
  }
}
