// Events of the Lemon Squeezy stand-in: signatures, names, custom data, order and retries. The SDK has no verifier, so the
// signature is checked with Node's HMAC, as the documentation shows.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { connectSdk, ok } from './lemonsqueezy_client.mjs';
import { startReceiver, startStandIn } from './processes.mjs';

const EVENTS = [
  'order_created',
  'order_refunded',
  'subscription_created',
  'subscription_updated',
  'subscription_cancelled',
  'subscription_resumed',
  'subscription_expired',
  'subscription_paused',
  'subscription_unpaused',
  'subscription_payment_success',
  'subscription_payment_failed',
  'subscription_payment_recovered',
  'subscription_payment_refunded',
];
const secret = 'judge-secret';
const { address, control } = await startStandIn('lemonsqueezy');
const sdk = connectSdk(address);
const {
  data: [store],
} = await ok(sdk.listStores());
const {
  variants: [variant],
} = await control('POST', '/products', { name: 'Pro', variants: [{ price: 1999, interval: 'month' }] });
const receiver = await startReceiver();
const { data: webhook } = await ok(sdk.createWebhook(store.id, { url: receiver.url, events: EVENTS, secret }));

async function buy() {
  const { data } = await ok(
    sdk.createCheckout(store.id, variant.id, {
      checkoutData: { email: 'customer@example.com', custom: { user_id: 'u1' } },
      productOptions: { redirectUrl: 'http://127.0.0.1:9/done' },
    }),
  );
  return { checkout: data, sold: await control('POST', `/checkouts/${data.id}/complete`) };
}

/** Returns the events that were received since the last call, in the order of their names. */
async function received() {
  await control('POST', '/notifications/settle');
  return receiver.received.splice(0).sort((a, b) => a.json.meta.event_name.localeCompare(b.json.meta.event_name));
}

const names = (messages) => messages.map(({ json }) => json.meta.event_name);

test('events_are_signed_and_have_the_custom_data', async () => {
  const { sold } = await buy();
  const messages = await received();
  assert.deepEqual(names(messages), ['order_created', 'subscription_created', 'subscription_payment_success']);
  for (const { headers, body, json } of messages) {
    assert.equal(headers['x-signature'], createHmac('sha256', secret).update(body).digest('hex'));
    assert.equal(headers['x-event-name'], json.meta.event_name);
    assert.deepEqual([json.meta.test_mode, json.meta.custom_data], [true, { user_id: 'u1' }]);
    assert.match(json.meta.webhook_id, /^[0-9a-f-]{36}$/);
  }
  const [order, subscription, invoice] = messages.map(({ json }) => json.data);
  assert.deepEqual([order.id, subscription.id, invoice.id], [sold.order.id, sold.subscription.id, sold.invoice.id]);
  assert.equal(invoice.type, 'subscription-invoices');
  assert.equal('custom_data' in (await ok(sdk.getSubscription(subscription.id))).data.attributes, false);
});

test('every_change_has_its_events', async () => {
  const {
    sold: {
      subscription: { id },
      invoice,
    },
  } = await buy();
  await received();
  const steps = [
    [() => control('POST', `/subscriptions/${id}/renew`, {}), ['subscription_payment_success', 'subscription_updated']],
    [
      () => control('POST', `/subscriptions/${id}/renew`, { outcome: 'fail' }),
      ['subscription_payment_failed', 'subscription_updated'],
    ],
    [
      () => control('POST', `/subscriptions/${id}/recover`),
      ['subscription_payment_recovered', 'subscription_payment_success', 'subscription_updated'],
    ],
    [() => ok(sdk.updateSubscription(id, { pause: { mode: 'void' } })), ['subscription_paused', 'subscription_updated']],
    [() => ok(sdk.updateSubscription(id, { pause: null })), ['subscription_unpaused', 'subscription_updated']],
    [() => ok(sdk.cancelSubscription(id)), ['subscription_cancelled', 'subscription_updated']],
    [() => ok(sdk.updateSubscription(id, { cancelled: false })), ['subscription_resumed', 'subscription_updated']],
    [() => control('POST', `/subscription-invoices/${invoice.id}/refund`), ['subscription_payment_refunded']],
    [() => control('POST', `/subscriptions/${id}/expire`), ['subscription_expired', 'subscription_updated']],
  ];
  for (const [step, expected] of steps) {
    await step();
    assert.deepEqual(names(await received()), expected);
  }
});

test('queued_events_are_delivered_in_any_order_and_only_200_counts', async () => {
  await control('POST', '/notifications/mode', { mode: 'queue' });
  await buy();
  const queued = await control('GET', '/notifications?state=queued');
  assert.deepEqual(
    queued.map(({ type }) => type),
    ['order_created', 'subscription_created', 'subscription_payment_success'],
  );
  receiver.status = 204;
  const [first] = await control('POST', '/notifications/deliver', { ids: [queued[2].id] });
  assert.deepEqual([first.status, first.state], [204, 'failed']);
  receiver.status = 200;
  const results = await control('POST', '/notifications/deliver', { ids: [queued[2].id, queued[0].id, queued[0].id] });
  assert.deepEqual(
    results.map(({ state }) => state),
    ['delivered', 'delivered', 'delivered'],
  );
  const ids = receiver.received.splice(0).map(({ json }) => json.meta.webhook_id);
  assert.deepEqual([ids[0] === ids[1], ids[2] === ids[3], new Set(ids).size], [true, true, 2]);
  await control('POST', '/notifications/drop');
  await control('POST', '/notifications/mode', { mode: 'send' });
});

test('page_of_a_checkout_pays_and_redirects', async () => {
  const { checkout } = await buy();
  await received();
  const page = await fetch(checkout.attributes.url, { method: 'POST', redirect: 'manual' });
  assert.deepEqual([page.status, page.headers.get('location')], [303, 'http://127.0.0.1:9/done']);
  assert.equal((await received()).length, 3);
});

test('webhooks_are_updated_and_deleted', async () => {
  const { data } = await ok(sdk.updateWebhook(webhook.id, { events: ['order_created'], secret: 'another-secret' }));
  assert.deepEqual(data.attributes.events, ['order_created']);
  await buy();
  const [message, ...others] = await received();
  assert.equal(others.length, 0);
  assert.equal(message.headers['x-signature'], createHmac('sha256', 'another-secret').update(message.body).digest('hex'));
  // The SDK reads the empty response as JSON and reports an error, but the webhook is deleted.
  await sdk.deleteWebhook(webhook.id);
  assert.equal((await ok(sdk.listWebhooks())).meta.page.total, 0);
});
