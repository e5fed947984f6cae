// Attempts to collect a payment intent, and its refunds and disputes.

import { newId } from '../ids.mjs';

const DECLINED = { code: 'card_declined', decline_code: 'generic_decline', message: 'Your card was declined.' };

/** Returns what happens to the next payment: a test's choice for the subscription or customer, or that of the test card. */
export function paymentOutcome(ledger, { subscription, customer, method }) {
  return ledger.outcomes.get(subscription) ?? ledger.outcomes.get(customer) ?? method?.outcome ?? 'fail';
}

export function createIntent(ledger, fields) {
  const intent = ledger.insert('pi', {
    customer: null,
    description: null,
    metadata: {},
    invoice: null,
    payment_method: null,
    latest_charge: null,
    status: 'requires_payment_method',
    amount_received: 0,
    amount_capturable: 0,
    capture_method: 'automatic',
    canceled_at: null,
    cancellation_reason: null,
    last_payment_error: null,
    ...fields,
  });
  intent.client_secret = `${intent.id}_secret_${newId('x', 20).slice(2)}`;
  ledger.emit('payment_intent.created', intent);
  return intent;
}

/** Confirms a payment intent. Returns whether the money was collected. */
export function confirmIntent(ledger, intent, outcome, method) {
  const payment_method = method?.id ?? intent.payment_method;
  if (outcome === 'requires_action') {
    ledger.change(intent, { status: 'requires_action', payment_method }, 'payment_intent.requires_action');
    return false;
  }
  const isPaid = outcome !== 'fail';
  const isCaptured = isPaid && intent.capture_method !== 'manual';
  const charge = createCharge(ledger, intent, { isPaid, isCaptured, payment_method });
  if (!isPaid) {
    ledger.change(
      intent,
      {
        status: 'requires_payment_method',
        latest_charge: charge.id,
        payment_method: null,
        last_payment_error: { ...DECLINED, charge: charge.id, type: 'card_error' },
      },
      'payment_intent.payment_failed',
    );
    return false;
  }
  if (!isCaptured) {
    const fields = { status: 'requires_capture', latest_charge: charge.id, payment_method, amount_capturable: intent.amount };
    ledger.change(intent, fields, 'payment_intent.amount_capturable_updated');
    return false;
  }
  ledger.change(
    intent,
    {
      status: 'succeeded',
      latest_charge: charge.id,
      payment_method,
      amount_received: intent.amount,
      last_payment_error: null,
    },
    'payment_intent.succeeded',
  );
  if (outcome === 'dispute') openDispute(ledger, charge, { status: 'needs_response' });
  if (outcome === 'inquiry') openDispute(ledger, charge, { status: 'warning_needs_response' });
  return true;
}

function createCharge(ledger, intent, { isPaid, isCaptured, payment_method }) {
  return ledger.insert(
    'ch',
    {
      amount: intent.amount,
      amount_captured: isCaptured ? intent.amount : 0,
      amount_refunded: 0,
      captured: isCaptured,
      currency: intent.currency,
      customer: intent.customer,
      description: intent.description,
      disputed: false,
      failure_code: isPaid ? null : DECLINED.code,
      failure_message: isPaid ? null : DECLINED.message,
      invoice: intent.invoice,
      metadata: {},
      paid: isPaid,
      payment_intent: intent.id,
      payment_method,
      refunded: false,
      status: isPaid ? 'succeeded' : 'failed',
    },
    isPaid ? 'charge.succeeded' : 'charge.failed',
  );
}

/** Refunds a part of a charge, or the rest of it. */
export function refundCharge(ledger, charge, { amount, reason = null, metadata = {} }) {
  const refund = ledger.insert('re', {
    amount: amount ?? charge.amount_captured - charge.amount_refunded,
    charge: charge.id,
    currency: charge.currency,
    customer: charge.customer,
    metadata,
    payment_intent: charge.payment_intent,
    reason,
    status: 'succeeded',
  });
  const amount_refunded = charge.amount_refunded + refund.amount;
  ledger.change(charge, { amount_refunded, refunded: amount_refunded === charge.amount_captured }, 'charge.refunded');
  ledger.emit('refund.created', refund);
  return refund;
}

export function openDispute(ledger, charge, { status = 'needs_response', reason = 'fraudulent', amount }) {
  charge.disputed = true;
  const dispute = ledger.insert(
    'du',
    {
      amount: amount ?? charge.amount_captured,
      charge: charge.id,
      currency: charge.currency,
      metadata: {},
      payment_intent: charge.payment_intent,
      reason,
      status,
    },
    'charge.dispute.created',
  );
  // An inquiry moves no money.
  if (!status.startsWith('warning_')) ledger.emit('charge.dispute.funds_withdrawn', dispute);
  return dispute;
}

/** Closes a dispute as won, lost or, for an inquiry, warning_closed. */
export function closeDispute(ledger, dispute, status) {
  ledger.change(dispute, { status }, 'charge.dispute.closed');
  if (status === 'won') ledger.emit('charge.dispute.funds_reinstated', dispute);
  return dispute;
}
