// The quickstart with the installed package: sign in, plan, subscription, payment, entitlements, events, a month later.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { memoryTokenStore, Perennial, PerennialError } from '@perennial/client';

const { variables, command } = JSON.parse(process.env.PERENNIAL_SANDBOX ?? '');
const perennial = new Perennial({ url: variables.URL, clientId: variables.CLIENT_ID });

/** Stands in for the identity provider. */
function providerToken(email: string): string {
  const [program, ...args] = [...command, 'sandbox', 'token', email];
  return execFileSync(program, args, { env: variables, encoding: 'utf8' }).trim();
}

const email = 'ada@example.com';
const ada = new Perennial({ url: variables.URL, clientId: variables.CLIENT_ID, tokenStore: memoryTokenStore() });
const user = await ada.session.signIn({ access_token: providerToken(email), email }, { signUp: true });
assert.equal(user.email, email);
assert.equal((await ada.entitlements()).active, false);

const plan = await perennial.post('/subscription-plans', {
  body: { name: 'Pro', slug: 'quickstart', price: 19.99, currency: 'USD', billing_cycle: 'monthly', features: 'SSO' },
});
assert.equal(plan.price, 19.99);

const order = { user_id: user.id, subscription_plan_id: plan.id, status: 'pending' } as const;
const subscription = await perennial.post('/subscriptions', { body: order, idempotencyKey: 'order-1042' });
const repeated = await perennial.post('/subscriptions', { body: order, idempotencyKey: 'order-1042' });
assert.equal(repeated.id, subscription.id);
assert.equal(subscription.is_active, false);

await perennial.post('/subscription-payments', {
  body: { subscription_id: subscription.id, amount: 19.99, currency: 'USD', status: 'completed' },
});
await perennial.put('/subscriptions/{id}', { path: { id: subscription.id }, body: { status: 'active' } });

ada.invalidateEntitlements();
assert.deepEqual((await ada.entitlements()).features, ['SSO']);
assert.equal((await perennial.entitlements(user.id)).active, true);

const own = [];
for await (const { id } of ada.list('/subscriptions')) own.push(id);
assert.deepEqual(own, [subscription.id]);

for await (const event of perennial.events({ types: 'subscription.created' })) {
  assert.equal(event.subject_id, subscription.id);
  break;
}

await perennial.put('/subscriptions/{id}', { path: { id: subscription.id }, body: { status: 'cancelled' } });
await ada.session.signOut();
await assert.rejects(ada.get('/entitlements'), (error) => error instanceof PerennialError && error.status >= 400);
console.log('package: the quickstart passed');
