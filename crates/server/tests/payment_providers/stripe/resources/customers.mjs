import { allow, emptyable, integer, mergeMetadata } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { attachPaymentMethod } from './payment_methods.mjs';
import { cancelSubscription } from '../billing/cancel.mjs';
import { copy } from '../ledger.mjs';

const FIELDS = ['email', 'name', 'description', 'phone', 'metadata', 'payment_method', 'invoice_settings', 'address', 'balance', 'expand'];

export function customerView(ledger, customer) {
  if (customer.deleted) return { id: customer.id, object: 'customer', deleted: true };
  return {
    id: customer.id,
    object: 'customer',
    address: null,
    balance: customer.balance,
    created: customer.created,
    currency: customer.currency,
    customer_account: null,
    default_source: null,
    delinquent: customer.delinquent,
    description: customer.description,
    discount: null,
    email: customer.email,
    invoice_prefix: customer.invoice_prefix,
    invoice_settings: {
      custom_fields: null,
      default_payment_method: customer.default_payment_method,
      footer: null,
      rendering_options: null,
    },
    livemode: ledger.livemode,
    metadata: customer.metadata,
    name: customer.name,
    next_invoice_sequence: customer.next_invoice,
    phone: customer.phone,
    preferred_locales: [],
    shipping: null,
    tax_exempt: 'none',
    test_clock: null,
  };
}

/** Creates a customer from plain fields. */
export function createCustomer(ledger, fields, eventType = 'customer.created') {
  const customer = ledger.insert('cus', {
    email: null,
    name: null,
    description: null,
    phone: null,
    metadata: {},
    currency: null,
    delinquent: false,
    // Negative if Stripe owes the customer.
    balance: 0,
    default_payment_method: null,
    next_invoice: 1,
    ...fields,
  });
  customer.invoice_prefix = customer.id.slice(-8).toUpperCase();
  if (eventType) ledger.emit(eventType, customer);
  return customer;
}

function create({ ledger, params }) {
  allow(params, FIELDS);
  const customer = createCustomer(ledger, {
    email: params.email || null,
    name: params.name || null,
    description: params.description || null,
    phone: params.phone || null,
    balance: integer(params.balance, 'balance') ?? 0,
    metadata: mergeMetadata({}, params.metadata),
  });
  const method = params.payment_method ? attachPaymentMethod(ledger, params.payment_method, customer) : undefined;
  // The name of a test card creates a payment method, and may be given for both parameters.
  if (method && params.invoice_settings?.default_payment_method === params.payment_method)
    customer.default_payment_method = method.id;
  else setDefaultPaymentMethod(ledger, customer, params);
  return customer;
}

function setDefaultPaymentMethod(ledger, customer, params) {
  const wanted = params.invoice_settings?.default_payment_method;
  if (wanted === undefined) return;
  if (wanted === '') customer.default_payment_method = null;
  else customer.default_payment_method = attachPaymentMethod(ledger, wanted, customer).id;
}

function update({ ledger, params, path }) {
  allow(params, FIELDS);
  const customer = ledger.get('customer', path.id);
  const before = copy(customer);
  setDefaultPaymentMethod(ledger, customer, params);
  Object.assign(customer, {
    email: emptyable(params.email, customer.email),
    name: emptyable(params.name, customer.name),
    description: emptyable(params.description, customer.description),
    phone: emptyable(params.phone, customer.phone),
    balance: integer(params.balance, 'balance') ?? customer.balance,
    metadata: mergeMetadata(customer.metadata, params.metadata),
  });
  if (JSON.stringify(before) !== JSON.stringify(customer)) ledger.emit('customer.updated', customer, before);
  return customer;
}

/** Deletes a customer. Stripe cancels the subscriptions of a deleted customer immediately. */
function remove({ ledger, path }) {
  const customer = ledger.get('customer', path.id);
  for (const subscription of ledger.subscriptions.all('customer', customer.id)) {
    if (!['canceled', 'incomplete_expired'].includes(subscription.status)) cancelSubscription(ledger, subscription);
  }
  ledger.emit('customer.deleted', customer);
  customer.deleted = true;
  return customer;
}

export const customerRoutes = [
  ['POST', '/v1/customers', create],
  [
    'GET',
    '/v1/customers',
    ({ ledger, params }) => listPage(ledger.customers, '/v1/customers', params, { filters: { email: 'email' } }),
  ],
  ['GET', '/v1/customers/:id', ({ ledger, path }) => ledger.get('customer', path.id)],
  ['POST', '/v1/customers/:id', update],
  ['DELETE', '/v1/customers/:id', remove],
];
