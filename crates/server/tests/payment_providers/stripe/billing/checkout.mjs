// What the paying customer does on the page of a checkout session.

import { createCustomer } from '../resources/customers.mjs';
import { attachPaymentMethod } from '../resources/payment_methods.mjs';
import { startSubscription } from './start.mjs';
import { confirmIntent, createIntent } from './payments.mjs';
import { createInvoice, finalizeInvoice } from './invoicing.mjs';
import { newId } from '../ids.mjs';
import { cardError, invalid } from '../errors.mjs';

/**
 * Pays a session with a test card. A declined card leaves the session open, as on the real page.
 * `email` and `name` are what the customer typed.
 */
export function completeSession(ledger, session, { email = null, name = null, card = 'pm_card_visa' } = {}) {
  if (session.status !== 'open') throw invalid(`This Checkout Session is ${session.status}.`);
  const customer = session.customer
    ? ledger.customers.get(session.customer)
    : createCustomer(ledger, {
        email: session.customer_email ?? email,
        name,
      });
  const method = attachPaymentMethod(ledger, card, customer);
  const isDeclined = ['fail', 'requires_action'].includes(method.outcome);
  const fields = { status: 'complete', customer: customer.id, customer_details: { email: customer.email, name: customer.name } };
  if (session.mode === 'subscription') {
    if (isDeclined) throw declined();
    customer.default_payment_method ??= method.id;
    const { metadata, trial_period_days, description } = session.subscription_data;
    const subscription = startSubscription(ledger, {
      customer,
      metadata,
      trial_period_days,
      description,
      items: session.line_items,
      default_payment_method: method.id,
    });
    Object.assign(fields, { subscription: subscription.id, invoice: subscription.latest_invoice });
    fields.payment_status = ledger.invoices.get(subscription.latest_invoice).amount_due > 0 ? 'paid' : 'no_payment_required';
  } else {
    const intent = createIntent(ledger, {
      amount: session.amount_total,
      currency: session.currency,
      customer: customer.id,
      metadata: session.payment_intent_metadata,
    });
    if (!confirmIntent(ledger, intent, method.outcome, method)) throw declined();
    Object.assign(fields, { payment_intent: intent.id, payment_status: 'paid' });
    if (session.invoice_creation.enabled) fields.invoice = invoicePayment(ledger, session, customer, intent).id;
  }
  return ledger.change(session, fields, 'checkout.session.completed');
}

/** Creates the invoice of a payment that was made, as `invoice_creation` does. */
function invoicePayment(ledger, session, customer, intent) {
  const now = ledger.now();
  const lines = session.line_items.map(({ price, quantity }) => ({
    amount: ledger.prices.get(price).unit_amount * quantity,
    description: ledger.products.get(ledger.prices.get(price).product).name,
    price,
    quantity,
    period: { start: now, end: now },
    subscription_item: null,
    proration: false,
    invoice_item: newId('ii'),
  }));
  const { metadata } = session.invoice_creation;
  const invoice = createInvoice(ledger, { customer, currency: session.currency, lines, metadata: { ...metadata } });
  return finalizeInvoice(ledger, invoice, { paidBy: intent });
}

function declined() {
  return cardError('Your card was declined.', { code: 'card_declined', decline_code: 'generic_decline' });
}

export function expireSession(ledger, session) {
  if (session.status !== 'open') throw invalid('Only Checkout Sessions with a status of open can be expired.');
  return ledger.change(session, { status: 'expired' }, 'checkout.session.expired');
}
