import { allow, integer, mergeMetadata, oneOf } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { invalid } from '../errors.mjs';
import { refundCharge } from '../billing/payments.mjs';

export function refundView(ledger, refund) {
  return {
    id: refund.id,
    object: 'refund',
    amount: refund.amount,
    balance_transaction: null,
    charge: refund.charge,
    created: refund.created,
    currency: refund.currency,
    customer: refund.customer,
    customer_account: null,
    destination_details: { card: { type: 'refund' }, type: 'card' },
    metadata: refund.metadata,
    payment_intent: refund.payment_intent,
    payment_method: ledger.charges.get(refund.charge)?.payment_method ?? null,
    reason: refund.reason,
    receipt_number: null,
    source_transfer_reversal: null,
    status: refund.status,
    transfer_reversal: null,
  };
}

function create({ ledger, params }) {
  allow(params, ['charge', 'payment_intent', 'amount', 'reason', 'metadata', 'expand']);
  if (!params.charge && !params.payment_intent) {
    throw invalid('One of the following params should be provided for this request: payment_intent or charge.');
  }
  const charge = params.charge
    ? ledger.get('charge', params.charge, 'charge')
    : ledger.charges.get(ledger.get('payment_intent', params.payment_intent, 'payment_intent').latest_charge);
  if (!charge || !charge.captured) throw invalid('This payment does not have a successful charge to refund.');
  const rest = charge.amount_captured - charge.amount_refunded;
  const amount = integer(params.amount, 'amount') ?? rest;
  if (rest === 0) throw invalid(`Charge ${charge.id} has already been refunded.`, { code: 'charge_already_refunded' });
  if (amount < 1 || amount > rest) {
    throw invalid(`Refund amount (${amount}) is greater than unrefunded amount on charge (${rest})`, { param: 'amount' });
  }
  const reason = oneOf(params.reason, ['duplicate', 'fraudulent', 'requested_by_customer'], 'reason') ?? null;
  return refundCharge(ledger, charge, { amount, reason, metadata: mergeMetadata({}, params.metadata) });
}

function update({ ledger, params, path }) {
  allow(params, ['metadata', 'expand']);
  const refund = ledger.get('refund', path.id);
  ledger.change(refund, { metadata: mergeMetadata(refund.metadata, params.metadata) }, 'refund.updated');
  ledger.emit('charge.refund.updated', refund);
  return refund;
}

export const refundRoutes = [
  ['POST', '/v1/refunds', create],
  [
    'GET',
    '/v1/refunds',
    ({ ledger, params }) =>
      listPage(ledger.refunds, '/v1/refunds', params, {
        filters: { payment_intent: 'payment_intent', charge: 'charge' },
      }),
  ],
  ['GET', '/v1/refunds/:id', ({ ledger, path }) => ledger.get('refund', path.id)],
  ['POST', '/v1/refunds/:id', update],
];
