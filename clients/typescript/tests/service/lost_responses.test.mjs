import assert from 'node:assert/strict';
import test from 'node:test';
import { memoryTokenStore } from '../../dist/index.js';
import { startProxy } from '../harness/faulty_proxy.mjs';
import { credentials, forEachIndex, isQuick, server } from '../harness/sandbox.mjs';

const CUTS = isQuick ? 100 : 1000;
const retry = { initialDelay: 10 };

/** Cuts the first response of each request body, in two ways. */
function cutFirstResponses() {
  const seen = new Set();
  return ({ method, path, body }) => {
    const id = `${method} ${path} ${body}`;
    if (seen.has(id)) return undefined;
    seen.add(id);
    return seen.size % 2 ? 'cut' : 'cut_body';
  };
}

/** Creates a user with subscriptions. */
async function subscriptions(number) {
  const client = server();
  const slug = 'lost-responses';
  const plan = await client.post('/subscription-plans', {
    body: { name: slug, slug, price: 5, billing_cycle: 'monthly' },
  });
  const user = await client.post('/users', { body: { email: `${slug}@example.com` } });
  const body = { user_id: user.id, subscription_plan_id: plan.id };
  const created = await forEachIndex(number, 1, () => client.post('/subscriptions', { body }));
  return { userId: user.id, ids: created.map(({ id }) => id) };
}

/** Returns the events of new payments that have one of these ids. */
async function eventsOf(payments) {
  const events = [];
  for await (const event of server().list('/events', { query: { types: 'payment.created' } })) {
    if (payments.has(event.subject_id)) events.push(event);
  }
  return events;
}

// Payments without an external id: only the key tells a repeated request from another payment.
test(`${CUTS} cut responses create no duplicate and lose no record`, async () => {
  const { userId, ids } = await subscriptions(16);
  const proxy = await startProxy(cutFirstResponses());
  const client = server({ url: proxy.url, retry });
  const created = await forEachIndex(CUTS, ids.length, async (index) => {
    const body = { subscription_id: ids[index % ids.length], amount: index + 1, currency: 'USD', status: 'completed' };
    const payment = await client.post('/subscription-payments', { body });
    assert.equal(payment.amount, index + 1);
    return payment.id;
  });
  await proxy.close();
  assert.equal(proxy.cuts, CUTS);
  assert.equal(proxy.requests.length, 2 * CUTS);
  assert.equal(new Set(proxy.requests.map(({ key }) => key)).size, CUTS);

  const listed = [];
  for await (const { id } of server().list('/payments', { query: { user_id: userId } })) listed.push(id);
  assert.deepEqual(listed.toSorted(), created.toSorted());
  // The log has an event a moment after its change.
  const deadline = Date.now() + 10_000;
  let events = [];
  while (events.length < CUTS && Date.now() < deadline) events = await eventsOf(new Set(created));
  assert.equal(events.length, CUTS);
});

test('a lost response of PUT and DELETE is not an error', async () => {
  const { id } = await server().post('/users', { body: { email: 'put@example.com' } });
  const proxy = await startProxy(cutFirstResponses());
  const client = server({ url: proxy.url, retry });
  const user = await client.put('/users/{id}', { path: { id }, body: { metadata: { plan: 'pro' } } });
  assert.equal(user.metadata.plan, 'pro');
  await client.delete('/users/{id}', { path: { id } });
  // Nothing was lost this time, so that 404 is an error.
  proxy.fault = () => undefined;
  await assert.rejects(client.delete('/users/{id}', { path: { id } }), { code: 'user_not_found' });
  await proxy.close();
});

test('a POST without Idempotency-Key whose response is lost is sent once', async () => {
  const client = server();
  const endpoint = await client.post('/webhook-endpoints', { body: { url: 'http://127.0.0.1:9/hook' } });
  const proxy = await startProxy(() => 'cut');
  const call = server({ url: proxy.url, retry }).post('/webhook-endpoints/{id}/rotate-secret', {
    path: { id: endpoint.id },
  });
  await assert.rejects(call, { code: 'connection_failed', status: 0 });
  assert.equal(proxy.requests.length, 1);
  await proxy.close();
  await client.delete('/webhook-endpoints/{id}', { path: { id: endpoint.id } });
});

test('attempts are bounded, and have one key', async () => {
  const proxy = await startProxy(() => 'cut');
  const call = server({ url: proxy.url, retry: { ...retry, attempts: 3 } }).post('/users', {
    body: { email: 'bounded@example.com' },
    idempotencyKey: 'bounded-1',
  });
  await assert.rejects(call, { code: 'connection_failed' });
  assert.deepEqual(
    proxy.requests.map(({ key }) => key),
    ['bounded-1', 'bounded-1', 'bounded-1'],
  );
  await proxy.close();
});

test('Retry-After of 429 and 503 is waited for', async () => {
  for (const status of [429, 503]) {
    let isFirst = true;
    const proxy = await startProxy(() => {
      if (!isFirst) return undefined;
      isFirst = false;
      return { status, headers: { 'retry-after': '1' }, body: '' };
    });
    const started = Date.now();
    await server({ url: proxy.url, retry }).get('/subscription-plans');
    assert.ok(Date.now() - started >= 1000, `${Date.now() - started} ms`);
    assert.equal(proxy.requests.length, 2);
    await proxy.close();
  }
});

test('a Retry-After beyond the longest delay is an error', async () => {
  const proxy = await startProxy(() => ({ status: 429, headers: { 'retry-after': '90' }, body: '' }));
  const call = server({ url: proxy.url }).get('/subscription-plans');
  await assert.rejects(call, { status: 429, code: 'unexpected_response' });
  assert.equal(proxy.requests.length, 1);
  await proxy.close();
});

test('a page of a proxy is an error without a problem document', async () => {
  for (const [status, reported] of [
    [200, 0],
    [404, 404],
  ]) {
    const proxy = await startProxy(() => ({ status, headers: { 'content-type': 'text/html' }, body: '<html>' }));
    const call = server({ url: proxy.url, retry }).get('/subscription-plans');
    await assert.rejects(call, { name: 'PerennialError', status: reported, code: 'unexpected_response' });
    await proxy.close();
  }
});

test('a signal cancels the delay between attempts', async () => {
  const proxy = await startProxy(() => ({ status: 503, headers: { 'retry-after': '30' }, body: '' }));
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 100);
  const started = Date.now();
  const call = server({ url: proxy.url }).get('/subscription-plans', { signal: controller.signal });
  await assert.rejects(call, { name: 'AbortError' });
  assert.ok(Date.now() - started < 5000);
  await proxy.close();
});

test('a service that does not respond is a timeout', async () => {
  const proxy = await startProxy(() => 'hang');
  const client = server({ url: proxy.url, retry: { ...retry, attempts: 2, timeout: 100 } });
  await assert.rejects(client.get('/subscription-plans'), { code: 'timeout', status: 0 });
  assert.equal(proxy.requests.length, 2);
  await proxy.close();
});

test('a lost response of a refresh does not sign the user out', async () => {
  const proxy = await startProxy();
  const client = server({ url: proxy.url, retry: { ...retry, attempts: 2 }, tokenStore: memoryTokenStore() });
  const user = await client.session.signIn(credentials('lost@example.com'), { signUp: true });
  const rejected = await client.session.accessToken();

  proxy.fault = cutFirstResponses();
  const second = await client.session.refresh(rejected);
  assert.notEqual(second, rejected);

  // All attempts are lost. The next call sends the same refresh token again.
  proxy.fault = () => 'cut';
  await assert.rejects(client.session.refresh(second), { code: 'connection_failed' });
  proxy.fault = () => ({ status: 503, headers: {}, body: '' });
  await assert.rejects(client.session.refresh(second), { status: 503 });
  assert.equal(await client.session.userId(), user.id);
  proxy.fault = () => undefined;
  assert.notEqual(await client.session.refresh(second), second);
  assert.equal((await client.get('/authentication/tokens')).data.length, 1);
  await proxy.close();
});
