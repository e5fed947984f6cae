// Delivered events, verified by the official SDK; and signatures of the SDK, verified by an independent example.

import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { test } from 'node:test';
import Stripe from 'stripe';
import { signatureHeader } from '../stripe/deliveries.mjs';
import { createCatalog, startReceiver, startStandIn, stripeClient } from './processes.mjs';

const { address, control } = await startStandIn('stripe');
const stripe = stripeClient(address);

async function connect(options = {}) {
  const receiver = await startReceiver();
  const endpoint = await stripe.webhookEndpoints.create({ url: receiver.url, enabled_events: ['*'], ...options });
  return { receiver, endpoint };
}

async function disconnect({ id }) {
  await stripe.webhookEndpoints.del(id);
}

const signature = (message) => message.headers['stripe-signature'];

test('sdk_accepts_delivered_events', async () => {
  const { receiver, endpoint } = await connect();
  const { price, customer } = await createCatalog(stripe);
  const subscription = await stripe.subscriptions.create({ customer: customer.id, items: [{ price: price.id }] });
  await control('POST', '/notifications/settle');
  const events = receiver.received.map((message) =>
    stripe.webhooks.constructEvent(message.body, signature(message), endpoint.secret),
  );
  const created = events.find(({ type }) => type === 'customer.subscription.created');
  assert.equal(created.data.object.id, subscription.id);
  assert.equal(created.data.object.status, 'incomplete');
  const updated = events.find(({ type }) => type === 'customer.subscription.updated');
  assert.deepEqual(updated.data.previous_attributes, { status: 'incomplete' });
  assert.equal(updated.data.object.status, 'active');
  const listed = await stripe.events.retrieve(created.id);
  assert.deepEqual([listed.type, listed.pending_webhooks], [created.type, 0]);
  await disconnect(endpoint);
});

test('sdk_rejects_other_secrets_bodies_and_times', async () => {
  const { receiver, endpoint } = await connect();
  await stripe.customers.create({});
  await control('POST', '/settings', { signing_offset: -301 });
  await stripe.customers.create({});
  await control('POST', '/settings', { signing_offset: 0 });
  await control('POST', '/notifications/settle');
  const [fresh, stale] = receiver.received.sort((a, b) => signature(b).localeCompare(signature(a)));
  const isRejected = (body, header, secret) =>
    assert.throws(() => stripe.webhooks.constructEvent(body, header, secret), Stripe.errors.StripeSignatureVerificationError);
  isRejected(fresh.body, signature(fresh), 'whsec_other');
  isRejected(fresh.body, signature(fresh), '');
  isRejected(`${fresh.body} `, signature(fresh), endpoint.secret);
  isRejected(stale.body, signature(stale), endpoint.secret);
  await disconnect(endpoint);
});

test('both_secrets_sign_while_one_is_rolled', async () => {
  const { receiver, endpoint } = await connect();
  const { secret } = await control('POST', `/webhook_endpoints/${endpoint.id}/roll_secret`, { expires_in: 3600 });
  await stripe.customers.create({});
  await control('POST', '/notifications/settle');
  const [message] = receiver.received;
  assert.equal(signature(message).match(/v1=/g).length, 2);
  for (const accepted of [secret, endpoint.secret]) stripe.webhooks.constructEvent(message.body, signature(message), accepted);
  await control('POST', '/clock', { seconds: 3601 });
  await stripe.customers.create({});
  await control('POST', '/notifications/settle');
  const after = receiver.received[1];
  stripe.webhooks.constructEvent(after.body, signature(after), secret);
  assert.throws(() => stripe.webhooks.constructEvent(after.body, signature(after), endpoint.secret));
  await disconnect(endpoint);
});

/** Verifies a signature as a receiver would, without the SDK. */
function isSigned(body, header, secret) {
  const fields = header.split(',').map((field) => field.split('='));
  const [, timestamp] = fields.find(([name]) => name === 't');
  const expected = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest();
  return fields.some(
    ([name, value]) => name === 'v1' && value.length === 64 && timingSafeEqual(Buffer.from(value, 'hex'), expected),
  );
}

test('signatures_of_the_sdk_and_of_the_stand_in_are_equal', () => {
  const payload = JSON.stringify({ id: 'evt_1', object: 'event' });
  const [secret, timestamp] = ['whsec_example', 1_798_761_600];
  const header = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
  assert.equal(isSigned(payload, header, secret), true);
  assert.equal(isSigned(payload, header, 'whsec_other'), false);
  assert.equal(header, signatureHeader(payload, timestamp, [secret]));
});

test('endpoint_receives_the_shape_of_its_version', async () => {
  const { receiver, endpoint } = await connect({
    api_version: '2024-06-20',
    enabled_events: ['customer.subscription.created', 'invoice.paid'],
  });
  const { price, customer } = await createCatalog(stripe);
  const subscription = await stripe.subscriptions.create({ customer: customer.id, items: [{ price: price.id }] });
  await control('POST', '/notifications/settle');
  assert.deepEqual(receiver.received.map(({ json }) => json.type).sort(), ['customer.subscription.created', 'invoice.paid']);
  for (const { json } of receiver.received) {
    assert.equal(json.api_version, '2024-06-20');
    if (json.type === 'invoice.paid') assert.equal(json.data.object.subscription, subscription.id);
    else assert.ok(json.data.object.current_period_end > 0);
  }
  await disconnect(endpoint);
});

test('thin_events_name_their_object', async () => {
  const receiver = await startReceiver();
  const destination = await stripe.v2.core.eventDestinations.create({
    name: 'thin',
    type: 'webhook_endpoint',
    event_payload: 'thin',
    enabled_events: ['v1.customer.created', 'v1.invoice.paid'],
    webhook_endpoint: { url: receiver.url },
    include: ['webhook_endpoint.signing_secret'],
  });
  const customer = await stripe.customers.create({ email: 'thin@example.com' });
  await control('POST', '/notifications/settle');
  assert.equal(receiver.received.length, 1);
  const [message] = receiver.received;
  const notification = stripe.parseEventNotification(
    message.body,
    signature(message),
    destination.webhook_endpoint.signing_secret,
  );
  assert.equal(notification.type, 'v1.customer.created');
  assert.deepEqual(
    { ...notification.related_object },
    { id: customer.id, type: 'customer', url: `/v1/customers/${customer.id}` },
  );
  assert.equal((await notification.fetchRelatedObject()).email, 'thin@example.com');
  assert.equal((await notification.fetchEvent()).id, notification.id);
  assert.throws(
    () => stripe.webhooks.constructEvent(message.body, signature(message), destination.webhook_endpoint.signing_secret),
    /thin event/,
  );
  await stripe.v2.core.eventDestinations.del(destination.id);
});

test('queued_notifications_are_delivered_in_any_order_repeated_or_dropped', async () => {
  const { receiver, endpoint } = await connect();
  await control('POST', '/notifications/mode', { mode: 'queue' });
  const customer = await stripe.customers.create({});
  await stripe.customers.update(customer.id, { name: 'A' });
  await stripe.customers.update(customer.id, { name: 'B' });
  assert.equal(receiver.received.length, 0);
  const [created, first, second] = await control('GET', '/notifications?state=queued');
  assert.deepEqual([created.type, created.object], ['customer.created', customer.id]);
  await control('POST', '/notifications/drop', { ids: [first.id] });
  const results = await control('POST', '/notifications/deliver', { ids: [second.id, created.id, created.id] });
  assert.deepEqual(
    results.map(({ status, attempts }) => [status, attempts]),
    [
      [200, 1],
      [200, 1],
      [200, 2],
    ],
  );
  assert.deepEqual(
    receiver.received.map(({ json }) => json.id),
    [second.event, created.event, created.event],
  );
  assert.equal(receiver.received[0].json.data.object.name, 'B');
  await control('POST', '/notifications/mode', { mode: 'send' });
  await disconnect(endpoint);
});

test('rejected_notifications_are_retried_on_demand', async () => {
  const { receiver, endpoint } = await connect();
  receiver.status = 503;
  await stripe.customers.create({});
  await control('POST', '/notifications/settle');
  const [failed] = (await control('GET', '/notifications?state=failed')).filter(
    (notification) => notification.endpoint === endpoint.id,
  );
  assert.equal(failed.status, 503);
  assert.equal((await stripe.events.list({ delivery_success: false })).data[0].id, failed.event);
  receiver.status = 204;
  const [retried] = await control('POST', '/notifications/retry', { ids: [failed.id] });
  assert.deepEqual([retried.state, retried.attempts], ['delivered', 2]);
  await disconnect(endpoint);
});

test('extra_events_have_new_ids', async () => {
  const { receiver, endpoint } = await connect();
  const customer = await stripe.customers.create({});
  const { id } = await control('POST', '/events', { type: 'customer.hugged', object: customer.id });
  await control('POST', '/notifications/settle');
  const types = Object.fromEntries(receiver.received.map(({ json }) => [json.id, json.type]));
  assert.equal(types[id], 'customer.hugged');
  assert.equal(Object.keys(types).length, 2);
  await disconnect(endpoint);
});

test('endpoints_are_listed_without_secrets_updated_and_deleted', async () => {
  const { endpoint } = await connect();
  assert.match(endpoint.secret, /^whsec_/);
  const listed = (await stripe.webhookEndpoints.list()).data.find(({ id }) => id === endpoint.id);
  assert.equal(listed.secret, undefined);
  const updated = await stripe.webhookEndpoints.update(endpoint.id, { enabled_events: ['invoice.paid'], disabled: true });
  assert.deepEqual([updated.enabled_events, updated.status], [['invoice.paid'], 'disabled']);
  assert.equal((await stripe.webhookEndpoints.del(endpoint.id)).deleted, true);
  await assert.rejects(stripe.webhookEndpoints.retrieve(endpoint.id), { statusCode: 404 });
  const unknown = stripe.webhookEndpoints.create({ url: 'http://127.0.0.1:9/', enabled_events: ['invoice.unknown'] });
  await assert.rejects(unknown, { param: 'enabled_events[0]' });
});
