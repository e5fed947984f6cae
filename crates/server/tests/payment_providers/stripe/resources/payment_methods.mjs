// Payment methods. Stripe's test cards decide by their name what happens to payments.

import { allow, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { invalid } from '../errors.mjs';

const OUTCOMES = {
  chargeDeclined: 'fail',
  visa_chargeDeclined: 'fail',
  chargeCustomerFail: 'fail',
  authenticationRequired: 'requires_action',
  threeDSecure2Required: 'requires_action',
  createDispute: 'dispute',
  createDisputeInquiry: 'inquiry',
};

export function paymentMethodView(ledger, method) {
  return {
    id: method.id,
    object: 'payment_method',
    allow_redisplay: 'unspecified',
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    card: {
      brand: 'visa',
      checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: null },
      country: 'US',
      display_brand: 'visa',
      exp_month: 8,
      exp_year: 2034,
      fingerprint: 'stand1nF1ngerPr1',
      funding: 'credit',
      generated_from: null,
      last4: '4242',
      networks: { available: ['visa'], preferred: null },
      regulated_status: 'unregulated',
      three_d_secure_usage: { supported: true },
      wallet: null,
    },
    created: method.created,
    customer: method.customer,
    customer_account: null,
    livemode: ledger.livemode,
    metadata: {},
    type: 'card',
  };
}

/** Creates a payment method from the name of a test card: `pm_card_visa` or `tok_visa`. */
function fromTestCard(ledger, name, customer = null) {
  const card = name.replace(/^(pm_card|tok)_/, '');
  return ledger.insert('pm', { customer, outcome: OUTCOMES[card] ?? 'succeed' });
}

/** Returns a payment method by its id or by the name of a test card. */
export function findPaymentMethod(ledger, name, param = 'payment_method') {
  if (name.startsWith('pm_card_')) return fromTestCard(ledger, name);
  return ledger.get('payment_method', name, param);
}

export function attachPaymentMethod(ledger, name, customer) {
  if (name.startsWith('pm_card_')) {
    const method = fromTestCard(ledger, name, customer.id);
    ledger.emit('payment_method.attached', method);
    return method;
  }
  const method = ledger.get('payment_method', name, 'payment_method');
  if (method.customer === customer.id) return method;
  if (method.customer) throw invalid('The payment method you provided has already been attached to a customer.');
  ledger.change(method, { customer: customer.id }, 'payment_method.attached');
  return method;
}

function create({ ledger, params }) {
  allow(params, ['type', 'card', 'billing_details', 'metadata', 'expand']);
  if (required(params, 'type') !== 'card') throw invalid('This stand-in has cards only.', { param: 'type' });
  return fromTestCard(ledger, params.card?.token ?? 'tok_visa');
}

function attach({ ledger, params, path }) {
  allow(params, ['customer', 'expand']);
  return attachPaymentMethod(ledger, path.id, ledger.get('customer', required(params, 'customer'), 'customer'));
}

function detach({ ledger, path }) {
  const method = ledger.get('payment_method', path.id);
  for (const customer of ledger.customers.all()) {
    if (customer.default_payment_method === method.id) customer.default_payment_method = null;
  }
  return ledger.change(method, { customer: null }, 'payment_method.detached');
}

export const paymentMethodRoutes = [
  ['POST', '/v1/payment_methods', create],
  [
    'GET',
    '/v1/payment_methods',
    ({ ledger, params }) =>
      listPage(ledger.payment_methods, '/v1/payment_methods', params, {
        matches: ({ customer }) => customer === params.customer,
        also: ['customer', 'type'],
      }),
  ],
  ['GET', '/v1/payment_methods/:id', ({ ledger, path }) => ledger.get('payment_method', path.id)],
  ['POST', '/v1/payment_methods/:id/attach', attach],
  ['POST', '/v1/payment_methods/:id/detach', detach],
];
