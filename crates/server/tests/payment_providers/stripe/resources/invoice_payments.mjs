// Which payment intent paid which invoice. Since Basil this is the only way from a refund or dispute to its invoice.

import { allow, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { invalid } from '../errors.mjs';

export function invoicePaymentView(ledger, payment) {
  return {
    id: payment.id,
    object: 'invoice_payment',
    amount_paid: payment.amount_paid,
    amount_requested: payment.amount_requested,
    created: payment.created,
    currency: payment.currency,
    invoice: payment.invoice,
    is_default: true,
    livemode: ledger.livemode,
    payment: { payment_intent: payment.payment_intent, type: 'payment_intent' },
    status: payment.status,
    status_transitions: { canceled_at: payment.canceled_at, paid_at: payment.paid_at },
  };
}

function list({ ledger, params }) {
  const { payment, ...rest } = params;
  if (payment !== undefined) {
    allow(payment, ['type', 'payment_intent', 'payment_record']);
    if (required(payment, 'type') !== 'payment_intent') {
      throw invalid('This stand-in has payments of the type payment_intent only.', { param: 'payment[type]' });
    }
    rest.payment_intent = required(payment, 'payment_intent');
  }
  return listPage(ledger.invoice_payments, '/v1/invoice_payments', rest, {
    filters: { payment_intent: 'payment_intent', invoice: 'invoice', status: 'status' },
  });
}

export const invoicePaymentRoutes = [
  ['GET', '/v1/invoice_payments', list],
  ['GET', '/v1/invoice_payments/:id', ({ ledger, path }) => ledger.get('invoice_payment', path.id)],
];
