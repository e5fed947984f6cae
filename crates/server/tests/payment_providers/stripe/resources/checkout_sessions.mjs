import { allow, boolean, integer, mergeMetadata, oneOf, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { invalid } from '../errors.mjs';
import { newId } from '../ids.mjs';
import { priceView } from './prices.mjs';
import { completeSession, expireSession } from '../billing/checkout.mjs';
import { findPaymentMethod } from './payment_methods.mjs';

const DAY = 86_400;

export function checkoutSessionView(ledger, session) {
  const isSubscription = session.mode === 'subscription';
  return {
    id: session.id,
    object: 'checkout.session',
    adaptive_pricing: null,
    after_expiration: null,
    allow_promotion_codes: session.allow_promotion_codes,
    allowed_payment_method_types: null,
    amount_subtotal: session.amount_total,
    amount_total: session.amount_total,
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    billing_address_collection: null,
    cancel_url: session.cancel_url,
    client_reference_id: session.client_reference_id,
    client_secret: null,
    collected_information: null,
    consent: null,
    consent_collection: null,
    created: session.created,
    currency: session.currency,
    currency_conversion: null,
    custom_fields: [],
    custom_text: { after_submit: null, shipping_address: null, submit: null, terms_of_service_acceptance: null },
    customer: session.customer,
    customer_account: null,
    customer_creation: isSubscription ? 'always' : 'if_required',
    customer_details: session.customer_details && {
      address: null,
      business_name: null,
      email: session.customer_details.email,
      individual_name: null,
      name: session.customer_details.name,
      phone: null,
      tax_exempt: 'none',
      tax_ids: [],
    },
    customer_email: session.customer_email,
    discounts: [],
    expires_at: session.expires_at,
    integration_identifier: null,
    invoice: session.invoice,
    invoice_creation: isSubscription
      ? null
      : {
          enabled: session.invoice_creation.enabled,
          invoice_data: {
            account_tax_ids: null,
            custom_fields: null,
            description: null,
            footer: null,
            issuer: null,
            metadata: session.invoice_creation.metadata,
            rendering_options: null,
          },
        },
    livemode: ledger.livemode,
    locale: null,
    managed_payments: null,
    metadata: session.metadata,
    mode: session.mode,
    origin_context: null,
    payment_intent: session.payment_intent,
    payment_link: null,
    payment_method_collection: isSubscription ? 'always' : 'if_required',
    payment_method_configuration_details: null,
    payment_method_options: {},
    payment_method_types: ['card'],
    payment_status: session.payment_status,
    permissions: null,
    recovered_from: null,
    saved_payment_method_options: null,
    setup_intent: null,
    shipping_address_collection: null,
    shipping_cost: null,
    shipping_options: [],
    status: session.status,
    submit_type: null,
    subscription: session.subscription,
    success_url: session.success_url,
    total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
    ui_mode: 'hosted_page',
    url: session.status === 'open' ? session.url : null,
    wallet_options: null,
  };
}

/** Returns the line items, which sessions contain only if a request expands them. */
export function checkoutLines(ledger, session) {
  return session.line_items.map(({ id, price: priceId, quantity }) => {
    const price = ledger.prices.get(priceId);
    const amount = price.unit_amount * quantity;
    return {
      id,
      object: 'item',
      adjustable_quantity: null,
      amount_discount: 0,
      amount_subtotal: amount,
      amount_tax: 0,
      amount_total: amount,
      currency: price.currency,
      description: ledger.products.get(price.product).name,
      metadata: {},
      price: priceView(ledger, price),
      quantity,
    };
  });
}

function create({ ledger, params, address }) {
  allow(params, [
    'mode',
    'line_items',
    'success_url',
    'cancel_url',
    'customer',
    'customer_email',
    'client_reference_id',
    'metadata',
    'subscription_data',
    'payment_intent_data',
    'invoice_creation',
    'allow_promotion_codes',
    'expires_at',
    'payment_method_types',
    'expand',
  ]);
  const mode = oneOf(required(params, 'mode'), ['payment', 'subscription'], 'mode');
  if (params.customer && params.customer_email) {
    throw invalid('You may only specify one of these parameters: customer, customer_email.', { code: 'parameters_exclusive' });
  }
  const line_items = required(params, 'line_items').map((item, at) => ({
    id: newId('li', 24),
    price: ledger.get('price', required(item, 'price'), `line_items[${at}][price]`).id,
    quantity: integer(item.quantity, `line_items[${at}][quantity]`) ?? 1,
  }));
  const prices = line_items.map(({ price }) => ledger.prices.get(price));
  if (mode === 'payment' && prices.some(({ interval }) => interval !== null)) {
    throw invalid(
      'You specified `payment` mode but passed a recurring price. Either switch to `subscription` mode or use only one-time prices.',
    );
  }
  if (mode === 'subscription' && prices.every(({ interval }) => interval === null)) {
    throw invalid('You must provide at least one recurring price in `subscription` mode when using prices.');
  }
  const createsInvoice = boolean(params.invoice_creation?.enabled, 'invoice_creation[enabled]') ?? false;
  if (mode !== 'payment' && createsInvoice) {
    throw invalid(
      'You can only enable invoice creation when `mode` is set to `payment`. Invoices are created automatically when `mode` is set to `subscription`.',
    );
  }
  const data = params.subscription_data ?? {};
  const id = newId(ledger.livemode ? 'cs_live' : 'cs_test', 58);
  return ledger.insert('cs', {
    id,
    mode,
    line_items,
    amount_total: line_items.reduce((sum, { quantity }, at) => sum + prices[at].unit_amount * quantity, 0),
    currency: prices[0].currency,
    allow_promotion_codes: boolean(params.allow_promotion_codes, 'allow_promotion_codes') ?? null,
    cancel_url: params.cancel_url || null,
    success_url: required(params, 'success_url'),
    client_reference_id: params.client_reference_id || null,
    customer: params.customer ? ledger.get('customer', params.customer, 'customer').id : null,
    customer_email: params.customer_email || null,
    customer_details: null,
    expires_at: integer(params.expires_at, 'expires_at') ?? ledger.now() + DAY,
    metadata: mergeMetadata({}, params.metadata),
    subscription_data: {
      metadata: mergeMetadata({}, data.metadata),
      trial_period_days: integer(data.trial_period_days, 'subscription_data[trial_period_days]'),
      description: data.description || null,
    },
    payment_intent_metadata: mergeMetadata({}, params.payment_intent_data?.metadata),
    invoice_creation: {
      enabled: createsInvoice,
      metadata: mergeMetadata({}, params.invoice_creation?.invoice_data?.metadata),
    },
    payment_intent: null,
    invoice: null,
    subscription: null,
    payment_status: 'unpaid',
    status: 'open',
    url: `${address()}/c/pay/${id}`,
  });
}

function confirmPage({ ledger, params, path }) {
  const session = ledger.get('checkout.session', path.id);
  const method = findPaymentMethod(ledger, required(params, 'payment_method'));
  return completeSession(ledger, session, { card: method.id });
}

export const checkoutSessionRoutes = [
  ['POST', '/v1/checkout/sessions', create],
  [
    'GET',
    '/v1/checkout/sessions',
    ({ ledger, params }) =>
      listPage(ledger.checkout_sessions, '/v1/checkout/sessions', params, {
        filters: { status: 'status' },
        matches: ({ customer, subscription }) =>
          (params.customer === undefined || customer === params.customer) &&
          (params.subscription === undefined || subscription === params.subscription),
        also: ['customer', 'subscription'],
      }),
  ],
  ['GET', '/v1/checkout/sessions/:id', ({ ledger, path }) => ledger.get('checkout.session', path.id)],
  [
    'POST',
    '/v1/checkout/sessions/:id/expire',
    ({ ledger, path }) => expireSession(ledger, ledger.get('checkout.session', path.id)),
  ],
  // The Stripe CLI completes sessions through the API of the payment page.
  ['GET', '/v1/payment_pages/:id', ({ ledger, path }) => ledger.get('checkout.session', path.id)],
  ['POST', '/v1/payment_pages/:id/confirm', confirmPage],
];
