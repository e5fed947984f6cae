// Compiled, not run: each line marked with @ts-expect-error must be an error, and all others must not.
import { Perennial, PerennialError, type Schemas } from '@perennial/client';

const perennial = new Perennial({ url: '', clientId: '' });
const plan = { name: 'Pro', slug: 'pro', price: 19.99, billing_cycle: 'monthly' } as const;

export async function correct(): Promise<Schemas['Plan'][]> {
  const created = await perennial.post('/subscription-plans', { body: plan, idempotencyKey: 'plan-1' });
  const path = { slug: 'pro' };
  const updated = await perennial.put('/subscription-plans/{slug}', { path, body: { price: 5 }, ifMatch: '"1"' });
  const read = await perennial.get('/subscription-plans/{slug}', { path, signal: AbortSignal.timeout(1000) });
  const page = await perennial.get('/subscription-plans');
  const body = { access_token: 'token', email: 'ada@example.com' };
  await perennial.post('/authentication/sign-in', { body, forwardedFor: '203.0.113.7' });
  return [created, updated, read, ...page.data];
}

export async function wrong(): Promise<void> {
  // @ts-expect-error: there is no such path
  await perennial.get('/subscription-plan');
  // @ts-expect-error: the path has no DELETE
  await perennial.delete('/subscription-plans');
  // @ts-expect-error: the parameter of the path is missing
  await perennial.get('/subscription-plans/{slug}');
  // @ts-expect-error: the path has another parameter
  await perennial.get('/subscription-plans/{slug}', { path: { id: 'pro' } });
  // @ts-expect-error: the body is missing
  await perennial.post('/subscription-plans');
  // @ts-expect-error: a required field is missing
  await perennial.post('/subscription-plans', { body: { slug: 'pro', price: 1, billing_cycle: 'monthly' } });
  // @ts-expect-error: there is no such field
  await perennial.post('/subscription-plans', { body: { ...plan, prices: 5 } });
  // @ts-expect-error: a price is a number or a string
  await perennial.post('/subscription-plans', { body: { ...plan, price: true } });
  // @ts-expect-error: there is no such parameter
  await perennial.get('/subscriptions', { query: { state: 'active' } });
  // @ts-expect-error: there is no such order
  await perennial.get('/subscriptions', { query: { sort: 'price' } });
  // @ts-expect-error: there is no such option
  await perennial.get('/subscriptions', { filters: {} });
  // @ts-expect-error: the endpoint has no Idempotency-Key
  await perennial.post('/webhook-endpoints/{id}/rotate-secret', { path: { id: '' }, idempotencyKey: '1' });
  // @ts-expect-error: a record has no pages
  perennial.list('/subscriptions/{id}', { path: { id: '' } });
  // @ts-expect-error: a subscription has no such field
  for await (const { state } of perennial.list('/subscriptions')) console.log(state);
  // @ts-expect-error: entitlements have no such field
  console.log((await perennial.entitlements()).quota);
  const error: unknown = undefined;
  // @ts-expect-error: there is no such code
  if (error instanceof PerennialError && error.code === 'slug_token') console.log(error);
}
