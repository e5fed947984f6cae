// The official Lemon Squeezy SDK uses the stand-in: resources, lists, errors, rate limit and faults.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectSdk, ok } from './lemonsqueezy_client.mjs';
import { startStandIn } from './processes.mjs';

const { address, control } = await startStandIn('lemonsqueezy');
const sdk = connectSdk(address);
const {
  data: [store],
} = await ok(sdk.listStores());

async function createVariants() {
  const { variants } = await control('POST', '/products', {
    name: 'Pro',
    variants: [
      { name: 'Monthly', price: 1999, interval: 'month' },
      { name: 'Yearly', price: 19_900, interval: 'year' },
      { name: 'Trial', price: 999, interval: 'month', trial_interval: 'day', trial_interval_count: 14 },
      { name: 'Once', price: 4900 },
    ],
  });
  return variants;
}

async function buy(variant, { email = 'customer@example.com', ...options } = {}) {
  const { data: checkout } = await ok(
    sdk.createCheckout(store.id, variant.id, { checkoutData: { email, custom: { user_id: 'u1' } } }),
  );
  return control('POST', `/checkouts/${checkout.id}/complete`, options);
}

test('user_and_store_are_readable', async () => {
  const user = await ok(sdk.getAuthenticatedUser());
  assert.equal(user.meta.test_mode, true);
  assert.equal((await ok(sdk.getStore(store.id))).data.attributes.currency, 'USD');
});

test('catalog_has_prices_with_intervals', async () => {
  const [monthly, , trial, once] = await createVariants();
  const { data: prices } = await ok(sdk.listPrices({ filter: { variantId: monthly.id } }));
  assert.deepEqual(
    [prices.length, prices[0].attributes.unit_price, prices[0].attributes.renewal_interval_unit],
    [1, 1999, 'month'],
  );
  assert.equal((await ok(sdk.getVariant(once.id))).data.attributes.is_subscription, false);
  const { included } = await ok(sdk.getVariant(trial.id, { include: ['product', 'price-model'] }));
  assert.deepEqual(included.map(({ type }) => type).sort(), ['prices', 'products']);
});

test('paid_checkout_creates_order_subscription_and_initial_invoice', async () => {
  const [monthly] = await createVariants();
  const { order, subscription, invoice } = await buy(monthly, { name: 'Payer' });
  const read = await ok(sdk.getSubscription(subscription.id, { include: ['customer', 'order', 'subscription-invoices'] }));
  assert.deepEqual([read.data.attributes.status, read.data.attributes.order_id], ['active', Number(order.id)]);
  assert.deepEqual(
    read.included.map(({ type, id }) => [type, id]).sort(),
    [
      ['customers', String(read.data.attributes.customer_id)],
      ['orders', order.id],
      ['subscription-invoices', invoice.id],
    ].sort(),
  );
  const { data } = await ok(sdk.getSubscriptionInvoice(invoice.id));
  assert.deepEqual(
    [data.attributes.billing_reason, data.attributes.status, data.attributes.total, data.attributes.total_formatted],
    ['initial', 'paid', 1999, '$19.99'],
  );
  const {
    data: [item],
  } = await ok(sdk.listOrderItems({ filter: { orderId: order.id } }));
  assert.equal(item.attributes.variant_id, Number(monthly.id));
});

test('only_variant_of_a_product_is_pending', async () => {
  const { variants } = await control('POST', '/products', { name: 'Solo', variants: [{ price: 999, interval: 'month' }] });
  const status = async ({ id }) => (await ok(sdk.getVariant(id))).data.attributes.status;
  assert.equal(await status(variants[0]), 'pending');
  const [monthly] = await createVariants();
  assert.equal(await status(monthly), 'published');
});

test('one_time_variant_creates_only_an_order', async () => {
  const [, , , once] = await createVariants();
  const bought = await buy(once);
  assert.deepEqual(Object.keys(bought), ['order']);
  assert.equal((await ok(sdk.getOrder(bought.order.id))).data.attributes.total, 4900);
  const refunded = await ok(sdk.issueOrderRefund(bought.order.id, 4900));
  assert.deepEqual([refunded.data.attributes.status, refunded.data.attributes.refunded_amount], ['refunded', 4900]);
});

test('subscription_is_paused_changed_cancelled_and_resumed', async () => {
  const [monthly, yearly] = await createVariants();
  const {
    subscription: { id },
  } = await buy(monthly);
  const change = async (fields) => (await ok(sdk.updateSubscription(id, fields))).data.attributes;
  for (const mode of ['void', 'free']) {
    const paused = await change({ pause: { mode, resumesAt: null } });
    assert.deepEqual([paused.status, paused.pause.mode], ['paused', mode]);
  }
  assert.deepEqual([(await change({ pause: null })).status], ['active']);
  const changed = await change({ variantId: Number(yearly.id), invoiceImmediately: true });
  assert.equal(changed.variant_id, Number(yearly.id));
  const { data: invoices } = await ok(sdk.listSubscriptionInvoices({ filter: { subscriptionId: id } }));
  assert.deepEqual(
    invoices.map(({ attributes }) => attributes.billing_reason),
    ['updated', 'initial'],
  );
  const {
    data: { attributes: cancelled },
  } = await ok(sdk.cancelSubscription(id));
  assert.deepEqual([cancelled.status, cancelled.cancelled, cancelled.ends_at], ['cancelled', true, changed.renews_at]);
  const resumed = await change({ cancelled: false });
  assert.deepEqual([resumed.status, resumed.ends_at], ['active', null]);
});

test('renewals_fail_recover_and_expire_with_time', async () => {
  const [monthly, , trial] = await createVariants();
  const {
    subscription: { id },
  } = await buy(trial);
  const status = async () => (await ok(sdk.getSubscription(id))).data.attributes.status;
  assert.equal(await status(), 'on_trial');
  await control('POST', '/clock', { seconds: 14 * 86_400 });
  assert.equal(await status(), 'active');
  await control('POST', `/subscriptions/${id}/renew`, { outcome: 'fail' });
  const {
    data: { attributes: late },
  } = await ok(sdk.getSubscription(id));
  assert.equal(late.status, 'past_due');
  const {
    data: [pending],
  } = await ok(sdk.listSubscriptionInvoices({ filter: { subscriptionId: id, status: 'pending' } }));
  await control('POST', `/subscriptions/${id}/recover`);
  assert.equal(await status(), 'active');
  const { data: paid } = await ok(sdk.getSubscriptionInvoice(pending.id));
  assert.equal(paid.attributes.status, 'paid');
  const partial = await ok(sdk.issueSubscriptionInvoiceRefund(pending.id, 99));
  assert.deepEqual([partial.data.attributes.status, partial.data.attributes.refunded_amount], ['partial_refund', 99]);
  const full = await ok(sdk.issueSubscriptionInvoiceRefund(pending.id, 900));
  assert.deepEqual([full.data.attributes.status, full.data.attributes.refunded], ['refunded', true]);
  await ok(sdk.cancelSubscription(id));
  await control('POST', '/clock', { seconds: 70 * 86_400 });
  assert.equal(await status(), 'expired');
  const other = (await buy(monthly)).subscription;
  await control('POST', `/subscriptions/${other.id}/outcome`, { outcome: 'fail' });
  await control('POST', '/clock', { seconds: 60 * 86_400 });
  assert.equal((await ok(sdk.getSubscription(other.id))).data.attributes.status, 'unpaid');
});

test('lists_have_numbered_pages', async () => {
  for (let at = 0; at < 12; at += 1) await ok(sdk.createCustomer(store.id, { name: 'Page', email: `page-${at}@example.com` }));
  const seen = [];
  for (let number = 1; ; number += 1) {
    const { data, meta, links } = await ok(sdk.listCustomers({ page: { number, size: 5 } }));
    seen.push(...data.map(({ id }) => id));
    assert.equal(meta.page.currentPage, number);
    assert.equal(Boolean(links.next), number < meta.page.lastPage);
    if (!links.next) {
      assert.equal(seen.length, meta.page.total);
      break;
    }
  }
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => Number(b) - Number(a)),
  );
  assert.equal(new Set(seen).size, seen.length);
  const { data } = await ok(sdk.listCustomers({ filter: { email: 'page-3@example.com' } }));
  assert.equal(data.length, 1);
});

test('errors_are_json_api_documents', async () => {
  const cases = [
    [() => sdk.getSubscription(999_999), 404, 'Not Found'],
    [() => sdk.listCustomers({ page: { size: 101 } }), 400, 'Bad Request'],
    [() => sdk.createCustomer(store.id, { name: '', email: 'x@example.com' }), 422, 'Unprocessable Entity'],
    [
      () => sdk.createWebhook(store.id, { url: 'http://127.0.0.1:9/', events: ['order_created'], secret: 'short' }),
      422,
      'Unprocessable Entity',
    ],
    [() => sdk.createCheckout(store.id, 999_999), 422, 'Unprocessable Entity'],
  ];
  for (const [call, status, title] of cases) {
    const { statusCode, error } = await call();
    assert.equal(statusCode, status);
    assert.equal(error.cause[0].title, title);
    assert.equal(error.cause[0].status, String(status));
  }
  const response = await fetch(`${address}/v1/stores`, {
    headers: { authorization: 'Bearer judge', accept: 'application/json' },
  });
  assert.equal(response.status, 406);
});

test('modes_and_revoked_keys_are_separate', async () => {
  await control('POST', '/keys', { key: 'live', mode: 'live' });
  sdk.lemonSqueezySetup({ apiKey: 'live' });
  const user = await ok(sdk.getAuthenticatedUser());
  assert.equal(user.meta.test_mode, false);
  assert.equal((await ok(sdk.listSubscriptions())).meta.page.total, 0);
  await control('POST', '/keys', { key: 'live', revoked: true });
  assert.equal((await sdk.listStores()).statusCode, 401);
  sdk.lemonSqueezySetup({ apiKey: 'judge' });
});

test('rate_limit_is_300_requests_per_minute', async () => {
  sdk.lemonSqueezySetup({ apiKey: 'busy' });
  for (let count = 0; count < 300; count += 1) await ok(sdk.getStore(store.id));
  const { statusCode, error } = await sdk.getStore(store.id);
  assert.deepEqual([statusCode, error.cause[0].detail], [429, 'Too Many Attempts.']);
  sdk.lemonSqueezySetup({ apiKey: 'judge' });
});

test('faults_are_injected', async () => {
  await control('POST', '/faults', { path: '/v1/stores*', kind: 'status', status: 500, count: 1 });
  assert.equal((await sdk.getStore(store.id)).statusCode, 500);
  await control('POST', '/faults', { path: '/v1/stores*', kind: 'garbage', count: 1 });
  assert.equal((await sdk.getStore(store.id)).error instanceof SyntaxError, true);
  await ok(sdk.getStore(store.id));
});
