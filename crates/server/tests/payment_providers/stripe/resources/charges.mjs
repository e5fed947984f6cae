import { listPage } from '../lists.mjs';
import { isBeforeBasil } from '../versions.mjs';

export function chargeView(ledger, charge, version) {
  const view = {
    id: charge.id,
    object: 'charge',
    amount: charge.amount,
    amount_captured: charge.amount_captured,
    amount_refunded: charge.amount_refunded,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: null,
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    calculated_statement_descriptor: 'STAND-IN',
    captured: charge.captured,
    created: charge.created,
    currency: charge.currency,
    customer: charge.customer,
    description: charge.description,
    disputed: charge.disputed,
    failure_balance_transaction: null,
    failure_code: charge.failure_code,
    failure_message: charge.failure_message,
    fraud_details: {},
    livemode: ledger.livemode,
    metadata: charge.metadata,
    on_behalf_of: null,
    outcome: {
      advice_code: null,
      network_advice_code: null,
      network_decline_code: null,
      network_status: charge.paid ? 'approved_by_network' : 'declined_by_network',
      reason: charge.paid ? null : 'generic_decline',
      risk_level: 'normal',
      seller_message: charge.paid ? 'Payment complete.' : 'The bank did not return any further details with this decline.',
      type: charge.paid ? 'authorized' : 'issuer_declined',
    },
    paid: charge.paid,
    payment_intent: charge.payment_intent,
    payment_method: charge.payment_method,
    payment_method_details: null,
    receipt_email: null,
    receipt_number: null,
    receipt_url: null,
    refunded: charge.refunded,
    review: null,
    shipping: null,
    source: null,
    source_transfer: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: charge.status,
    transfer_data: null,
    transfer_group: null,
  };
  return isBeforeBasil(version) ? { ...view, invoice: charge.invoice } : view;
}

export const chargeRoutes = [
  [
    'GET',
    '/v1/charges',
    ({ ledger, params }) =>
      listPage(ledger.charges, '/v1/charges', params, {
        filters: { payment_intent: 'payment_intent', customer: 'customer' },
      }),
  ],
  ['GET', '/v1/charges/:id', ({ ledger, path }) => ledger.get('charge', path.id)],
];
