import assert from 'node:assert/strict';
import test from 'node:test';
import { startProxy } from '../harness/faulty_proxy.mjs';
import { server, until } from '../harness/sandbox.mjs';

let number = 0;

/** Creates a user with an active subscription. */
async function subscriber() {
  number += 1;
  const client = server();
  const slug = `entitled-${number}-${Date.now()}`;
  const plan = await client.post('/subscription-plans', {
    body: { name: 'Pro', slug, price: 5, billing_cycle: 'monthly', tier: 2, features: 'SSO' },
  });
  const user = await client.post('/users', { body: { email: `${slug}@example.com`, external_user_id: slug } });
  const body = { user_id: user.id, subscription_plan_id: plan.id, status: 'active' };
  const subscription = await client.post('/subscriptions', { body });
  const suspend = (isActive) =>
    client.put('/subscriptions/{id}', { path: { id: subscription.id }, body: { is_active: isActive } });
  return { user, plan, subscription, suspend };
}

test('entitlements are cached, and an expired entry is revalidated by its entity tag', async () => {
  const { user } = await subscriber();
  const proxy = await startProxy();
  const client = server({ url: proxy.url, entitlementsTtl: 300, retry: { attempts: 1 } });
  const results = await Promise.all(Array.from({ length: 20 }, () => client.entitlements(user.id)));
  for (const { features } of results) assert.deepEqual(features, ['SSO']);
  await client.entitlements(user.id);
  assert.equal(proxy.requests.length, 1);
  await new Promise((resolve) => setTimeout(resolve, 350));
  assert.equal((await client.entitlements(user.id)).tier, 2);
  assert.deepEqual(
    proxy.requests.map(({ status }) => status),
    [200, 304],
  );
  assert.equal((await client.entitlements({ externalUserId: user.external_user_id })).user_id, user.id);
  await proxy.close();
  await new Promise((resolve) => setTimeout(resolve, 350));
  // Never an old entry instead of an error.
  await assert.rejects(client.entitlements(user.id), { code: 'connection_failed' });
});

test('a suspension takes effect within the TTL', async () => {
  const { user, suspend } = await subscriber();
  const client = server({ entitlementsTtl: 1000 });
  assert.equal((await client.entitlements(user.id)).active, true);
  await suspend(false);
  assert.equal((await client.entitlements(user.id)).active, true, 'the entry is cached');
  const took = await until(async () => !(await client.entitlements(user.id)).active);
  assert.ok(took < 1500, `${took} ms`);
});

test('an invalidation takes effect immediately', async () => {
  const { user, suspend } = await subscriber();
  const client = server({ entitlementsTtl: 60_000 });
  assert.equal((await client.entitlements(user.id)).active, true);
  await suspend(false);
  client.invalidateEntitlements(user.id);
  assert.equal((await client.entitlements(user.id)).active, false);
});

test('followed entitlements change before the TTL has passed', async () => {
  const { user, plan, suspend } = await subscriber();
  const proxy = await startProxy();
  const client = server({ url: proxy.url, entitlementsTtl: 60_000 });
  const controller = new AbortController();
  const following = client.followEntitlements({ signal: controller.signal });
  await until(() => proxy.requests.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const times = [];
  for (const isActive of [false, true, false, true]) {
    await client.entitlements(user.id);
    await suspend(isActive);
    times.push(await until(async () => (await client.entitlements(user.id)).active === isActive));
    if (times.length === 2) proxy.cutConnections();
  }
  await server().put('/subscription-plans/{slug}', { path: { slug: plan.slug }, body: { features: 'SSO, Audit log' } });
  times.push(await until(async () => (await client.entitlements(user.id)).features.length === 2));
  console.log(`changes took effect after ${times.join(', ')} ms`);
  assert.ok(Math.max(...times) < 4000, `${times} ms`);
  controller.abort();
  await following;
  await proxy.close();
});

test('an entry lasts no longer than a subscription', async () => {
  const { user, subscription } = await subscriber();
  const ends_at = new Date(Date.now() + 1500).toISOString();
  await server().put('/subscriptions/{id}', { path: { id: subscription.id }, body: { status: 'cancelled', ends_at } });
  const client = server({ entitlementsTtl: 60_000 });
  assert.equal((await client.entitlements(user.id)).active, true);
  const took = await until(async () => !(await client.entitlements(user.id)).active);
  assert.ok(took < 3000, `${took} ms`);
});
