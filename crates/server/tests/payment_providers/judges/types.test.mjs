// Responses are compared with the type definitions of the official SDKs by the TypeScript compiler: no property may be
// missing, unknown or of another type.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { EVENT_TYPES } from '../stripe/event_types.mjs';
import { startReceiver, startStandIn } from './processes.mjs';

const run = promisify(execFile);
const root = fileURLToPath(new URL('..', import.meta.url));
const source = `${root}types-${process.pid}.ts`;
after(() => rmSync(source, { force: true }));

/** Returns the errors of the compiler for values of these types. */
async function compile(values) {
  const lines = values.map(([type, value], at) => `export const value${at}: ${type} = ${literal(value)};`);
  writeFileSync(
    source,
    ["import Stripe from 'stripe';", "import type * as LemonSqueezy from '@lemonsqueezy/lemonsqueezy.js';", ...lines, ''].join(
      '\n',
    ),
  );
  const tsc = `${root}node_modules/typescript/bin/tsc`;
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext', source];
  const { stdout } = await run(process.execPath, [tsc, ...options], { cwd: root }).catch((error) => error);
  return stdout.split('\n').filter((line) => line.includes('error'));
}

/** The SDK turns decimal strings into objects. */
function literal(value) {
  return JSON.stringify(value).replaceAll(/"(\w+_decimal)":"(\d+)"/g, '"$1":Stripe.Decimal.from("$2")');
}

async function stripeValues() {
  const { address, control } = await startStandIn('stripe');
  const receiver = await startReceiver();
  const call = async (method, path, fields) => {
    const headers = { authorization: 'Bearer sk_test_judge', 'content-type': 'application/x-www-form-urlencoded' };
    const response = await fetch(`${address}/v1/${path}`, {
      method,
      headers,
      body: fields && new URLSearchParams(fields).toString(),
    });
    assert.ok(response.ok, `${method} ${path}`);
    return response.json();
  };
  const endpoint = await call('POST', 'webhook_endpoints', { url: receiver.url, 'enabled_events[]': '*' });
  const product = await call('POST', 'products', { name: 'Pro' });
  const price = await call('POST', 'prices', {
    product: product.id,
    currency: 'usd',
    unit_amount: '1999',
    'recurring[interval]': 'month',
  });
  const single = await call('POST', 'prices', { product: product.id, currency: 'usd', unit_amount: '500' });
  const customer = await call('POST', 'customers', {
    payment_method: 'pm_card_visa',
    'invoice_settings[default_payment_method]': 'pm_card_visa',
  });
  const subscription = await call('POST', 'subscriptions', {
    customer: customer.id,
    'items[0][price]': price.id,
    'expand[]': 'latest_invoice.payments',
    cancel_at_period_end: 'true',
  });
  const invoice = subscription.latest_invoice;
  const intent = await call('GET', `payment_intents/${invoice.payments.data[0].payment.payment_intent}`);
  const refund = await call('POST', 'refunds', { payment_intent: intent.id, amount: '5' });
  const dispute = await control('POST', `/invoices/${invoice.id}/dispute`, {});
  await control('POST', `/payments/${subscription.id}/outcome`, { outcome: 'fail' });
  await control('POST', `/subscriptions/${subscription.id}/renew`);
  const item = await call('POST', 'invoiceitems', { customer: customer.id, amount: '5', currency: 'usd' });
  const draft = await call('POST', 'invoices', { customer: customer.id, pending_invoice_items_behavior: 'include' });
  const checkout = (mode, { id }) =>
    call('POST', 'checkout/sessions', { mode, 'line_items[0][price]': id, success_url: 'http://127.0.0.1:9/' });
  const open = await checkout('payment', single);
  const paid = await checkout('subscription', price);
  await control('POST', `/checkout_sessions/${paid.id}/complete`, { email: 'payer@example.com' });
  return [
    ['Stripe.WebhookEndpoint', endpoint],
    ['Stripe.Product', product],
    ['Stripe.Price', price],
    ['Stripe.Price', single],
    ['Stripe.Customer', customer],
    ['Stripe.Subscription', subscription],
    ['Stripe.Invoice', invoice],
    ['Stripe.PaymentIntent', intent],
    ['Stripe.Charge', await call('GET', `charges/${intent.latest_charge}?expand[]=refunds`)],
    ['Stripe.Refund', refund],
    ['Stripe.Dispute', dispute],
    ['Stripe.InvoiceItem', item],
    ['Stripe.Invoice', draft],
    ['Stripe.Checkout.Session', open],
    ['Stripe.Checkout.Session', await call('GET', `checkout/sessions/${paid.id}?expand[]=line_items`)],
    ['Stripe.BillingPortal.Session', await call('POST', 'billing_portal/sessions', { customer: customer.id })],
    ['Stripe.PaymentMethod', await call('POST', 'payment_methods', { type: 'card', 'card[token]': 'tok_visa' })],
    ['Stripe.Account', await call('GET', 'account')],
    ['Stripe.ApiList<Stripe.Subscription>', await call('GET', 'subscriptions?status=all')],
    ['Stripe.ApiList<Stripe.InvoicePayment>', await call('GET', 'invoice_payments')],
    ['Stripe.ApiList<Stripe.Event>', await call('GET', 'events?limit=100')],
  ];
}

async function lemonSqueezyValues() {
  const { address, control } = await startStandIn('lemonsqueezy');
  const call = async (method, path, data) => {
    const headers = {
      authorization: 'Bearer judge',
      accept: 'application/vnd.api+json',
      'content-type': 'application/vnd.api+json',
    };
    const response = await fetch(`${address}/v1/${path}`, { method, headers, body: data && JSON.stringify({ data }) });
    assert.ok(response.ok, `${method} ${path}`);
    return response.json();
  };
  const {
    variants: [variant],
  } = await control('POST', '/products', { name: 'Pro', variants: [{ price: 1999, interval: 'month' }] });
  const store = { data: { type: 'stores', id: '1' } };
  const attributes = { url: 'http://127.0.0.1:9/', events: ['order_created'], secret: 'judge-secret' };
  const webhook = await call('POST', 'webhooks', { type: 'webhooks', attributes, relationships: { store } });
  const checkout = await call('POST', 'checkouts', {
    type: 'checkouts',
    attributes: { preview: true, checkout_data: { billing_address: { country: 'US', zip: '94103' }, custom: { user_id: 'u1' } } },
    relationships: { store, variant: { data: { type: 'variants', id: variant.id } } },
  });
  const { order, subscription, invoice } = await control('POST', `/checkouts/${checkout.data.id}/complete`);
  await control('POST', `/subscriptions/${subscription.id}/renew`, { outcome: 'fail' });
  await call('PATCH', `subscriptions/${subscription.id}`, {
    type: 'subscriptions',
    id: subscription.id,
    attributes: { pause: { mode: 'free' } },
  });
  const types = {
    'users/me': 'User',
    stores: 'ListStores',
    'stores/1': 'Store',
    products: 'ListProducts',
    'products/1': 'Product',
    variants: 'ListVariants',
    'variants/1': 'Variant',
    prices: 'ListPrices',
    'prices/1': 'Price',
    customers: 'ListCustomers',
    'customers/1': 'Customer',
    orders: 'ListOrders',
    [`orders/${order.id}`]: 'Order',
    'order-items': 'ListOrderItems',
    'order-items/1': 'OrderItem',
    subscriptions: 'ListSubscriptions',
    [`subscriptions/${subscription.id}`]: 'Subscription',
    'subscription-invoices': 'ListSubscriptionInvoices',
    [`subscription-invoices/${invoice.id}`]: 'SubscriptionInvoice',
    webhooks: 'ListWebhooks',
  };
  const values = [
    ['LemonSqueezy.Webhook', webhook],
    ['LemonSqueezy.Checkout', checkout],
  ];
  for (const [path, type] of Object.entries(types)) values.push([`LemonSqueezy.${type}`, await call('GET', path)]);
  return values;
}

/** Returns copies of a refund that the compiler must reject: with a missing, an unknown and a wrong property. */
function wrongValues(values) {
  const [, refund] = values.find(([type]) => type === 'Stripe.Refund');
  const { amount, ...missing } = refund;
  return [missing, { ...refund, unknown: 1 }, { ...refund, amount: String(amount) }].map((value) => ['Stripe.Refund', value]);
}

test('responses_have_the_types_of_the_sdks', async () => {
  const types = ['Array<Stripe.WebhookEndpointCreateParams.EnabledEvent>', [...EVENT_TYPES]];
  const values = [...(await stripeValues()), ...(await lemonSqueezyValues()), types];
  const errors = await compile([...values, ...wrongValues(values)]);
  // Each value has a line; two imports precede them.
  const lines = errors.map((error) => Number(/\((\d+),/.exec(error)[1]) - 3);
  assert.deepEqual(
    lines,
    [0, 1, 2].map((offset) => values.length + offset),
    errors.join('\n'),
  );
});
