import { allow, boolean, currency, integer, mergeMetadata, oneOf, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { cardError, invalid } from '../errors.mjs';
import { isBeforeBasil } from '../versions.mjs';
import { checkAmount } from './prices.mjs';
import { findPaymentMethod } from './payment_methods.mjs';
import { confirmIntent, createIntent, paymentOutcome } from '../billing/payments.mjs';

export function paymentIntentView(ledger, intent, version) {
  const view = {
    id: intent.id,
    object: 'payment_intent',
    allowed_payment_method_types: null,
    amount: intent.amount,
    amount_capturable: intent.amount_capturable,
    amount_details: { tip: {} },
    amount_received: intent.amount_received,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: intent.canceled_at,
    cancellation_reason: intent.cancellation_reason,
    capture_method: intent.capture_method,
    client_secret: intent.client_secret,
    confirmation_method: 'automatic',
    created: intent.created,
    currency: intent.currency,
    customer: intent.customer,
    customer_account: null,
    description: intent.description,
    excluded_payment_method_types: null,
    last_payment_error: intent.last_payment_error,
    latest_charge: intent.latest_charge,
    livemode: ledger.livemode,
    managed_payments: null,
    metadata: intent.metadata,
    next_action: intent.status === 'requires_action' ? { type: 'use_stripe_sdk', use_stripe_sdk: {} } : null,
    on_behalf_of: null,
    payment_method: intent.payment_method,
    payment_method_configuration_details: null,
    payment_method_options: {},
    payment_method_types: ['card'],
    payment_record: null,
    processing: null,
    receipt_email: null,
    review: null,
    setup_future_usage: null,
    shipping: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: intent.status,
    transfer_data: null,
    transfer_group: null,
  };
  return isBeforeBasil(version) ? { ...view, invoice: intent.invoice } : view;
}

function create({ ledger, params }) {
  allow(params, [
    'amount',
    'currency',
    'customer',
    'description',
    'metadata',
    'payment_method',
    'payment_method_types',
    'confirm',
    'capture_method',
    'confirmation_method',
    'return_url',
    'shipping',
    'automatic_payment_methods',
    'off_session',
    'expand',
  ]);
  const code = currency(required(params, 'currency'));
  const method = params.payment_method ? findPaymentMethod(ledger, params.payment_method) : undefined;
  const intent = createIntent(ledger, {
    amount: checkAmount(integer(required(params, 'amount'), 'amount'), code, 'amount'),
    currency: code,
    customer: params.customer ? ledger.get('customer', params.customer, 'customer').id : null,
    description: params.description || null,
    metadata: mergeMetadata({}, params.metadata),
    capture_method: oneOf(params.capture_method, ['automatic', 'automatic_async', 'manual'], 'capture_method') ?? 'automatic',
    payment_method: method?.id ?? null,
    status: method ? 'requires_confirmation' : 'requires_payment_method',
  });
  return boolean(params.confirm, 'confirm') ? confirmWith(ledger, intent, method) : intent;
}

function confirm({ ledger, params, path }) {
  allow(params, ['payment_method', 'return_url', 'off_session', 'expand']);
  const intent = ledger.get('payment_intent', path.id);
  const method = params.payment_method
    ? findPaymentMethod(ledger, params.payment_method)
    : ledger.payment_methods.get(intent.payment_method);
  return confirmWith(ledger, intent, method);
}

function confirmWith(ledger, intent, method) {
  if (!method)
    throw invalid("You cannot confirm this PaymentIntent because it's missing a payment method.", {
      code: 'payment_intent_unexpected_state',
    });
  confirmIntent(ledger, intent, paymentOutcome(ledger, { customer: intent.customer, method }), method);
  if (intent.status !== 'requires_payment_method') return intent;
  const { message, ...fields } = intent.last_payment_error;
  throw cardError(message, { ...fields, payment_intent: paymentIntentView(ledger, intent, '9999-01-01') });
}

function capture({ ledger, path }) {
  const intent = ledger.get('payment_intent', path.id);
  if (intent.status !== 'requires_capture') throw unexpectedState('captured', intent);
  const charge = ledger.charges.get(intent.latest_charge);
  ledger.change(charge, { captured: true, amount_captured: charge.amount }, 'charge.captured');
  return ledger.change(
    intent,
    { status: 'succeeded', amount_received: intent.amount, amount_capturable: 0 },
    'payment_intent.succeeded',
  );
}

function cancel({ ledger, params, path }) {
  allow(params, ['cancellation_reason', 'expand']);
  const intent = ledger.get('payment_intent', path.id);
  if (['succeeded', 'canceled'].includes(intent.status)) throw unexpectedState('canceled', intent);
  return ledger.change(
    intent,
    {
      status: 'canceled',
      canceled_at: ledger.now(),
      cancellation_reason: params.cancellation_reason ?? null,
    },
    'payment_intent.canceled',
  );
}

function unexpectedState(action, intent) {
  return invalid(`This PaymentIntent could not be ${action} because it has a status of ${intent.status}.`, {
    code: 'payment_intent_unexpected_state',
  });
}

export const paymentIntentRoutes = [
  ['POST', '/v1/payment_intents', create],
  [
    'GET',
    '/v1/payment_intents',
    ({ ledger, params }) =>
      listPage(ledger.payment_intents, '/v1/payment_intents', params, { filters: { customer: 'customer' } }),
  ],
  ['GET', '/v1/payment_intents/:id', ({ ledger, path }) => ledger.get('payment_intent', path.id)],
  ['POST', '/v1/payment_intents/:id/confirm', confirm],
  ['POST', '/v1/payment_intents/:id/capture', capture],
  ['POST', '/v1/payment_intents/:id/cancel', cancel],
];
