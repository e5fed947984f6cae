// Injected faults, as the official SDK sees them.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import Stripe from 'stripe';
import { startStandIn, stripeClient } from './processes.mjs';

const { address, control } = await startStandIn('stripe');
const stripe = stripeClient(address, { timeout: 500 });
const customer = await stripe.customers.create({ email: 'faults@example.com' });
const path = `/v1/customers/${customer.id}`;
const inject = (rule) => control('POST', '/faults', rule);

beforeEach(() => control('DELETE', '/faults'));

test('status_429_is_a_rate_limit_error_with_retry_after', async () => {
  await inject({ path, kind: 'status', status: 429, retry_after: 2, count: 1 });
  const error = await stripe.customers.retrieve(customer.id).catch((reason) => reason);
  assert.ok(error instanceof Stripe.errors.StripeRateLimitError, `${error}`);
  assert.equal(error.headers['retry-after'], '2');
  assert.equal((await stripe.customers.retrieve(customer.id)).id, customer.id);
});

test('status_500_is_an_api_error', async () => {
  await inject({ path: '/v1/customers*', kind: 'status', status: 500 });
  await assert.rejects(stripe.customers.retrieve(customer.id), Stripe.errors.StripeAPIError);
  await assert.rejects(stripe.customers.list(), Stripe.errors.StripeAPIError);
  await stripe.products.list();
});

test('timeouts_and_resets_are_connection_errors', async () => {
  // The SDK always repeats a request once after a reset.
  for (const [kind, count] of [
    ['timeout', 1],
    ['reset', 2],
  ]) {
    await inject({ path, kind, count });
    await assert.rejects(stripe.customers.retrieve(customer.id), Stripe.errors.StripeConnectionError, kind);
  }
});

test('garbage_is_an_api_error', async () => {
  await inject({ path, kind: 'garbage', count: 1 });
  await assert.rejects(stripe.customers.retrieve(customer.id), Stripe.errors.StripeAPIError);
});

test('slow_responses_arrive', async () => {
  await inject({ path, kind: 'slow', delay_ms: 200, count: 1 });
  const start = Date.now();
  await stripe.customers.retrieve(customer.id);
  assert.ok(Date.now() - start >= 190);
});

test('slow_response_of_an_executed_request_is_stale', async () => {
  await inject({ path, kind: 'slow', delay_ms: 200, executes: true, count: 1 });
  const stale = stripe.customers.retrieve(customer.id);
  await new Promise((resolve) => {
    setTimeout(resolve, 100);
  });
  await stripe.customers.update(customer.id, { name: 'Newer' });
  assert.equal((await stale).name, null);
});

test('lost_response_is_repeated_for_the_idempotency_key', async () => {
  await inject({ path: '/v1/customers', method: 'POST', kind: 'reset', executes: true, count: 1 });
  const retrying = stripeClient(address, { maxNetworkRetries: 2 });
  const created = await retrying.customers.create({ email: 'retried@example.com' });
  const { data } = await stripe.customers.list({ email: 'retried@example.com' });
  assert.deepEqual(
    data.map(({ id }) => id),
    [created.id],
  );
  const recent = await control('GET', '/requests/recent');
  const attempts = recent.filter(({ method, path: requested }) => method === 'POST' && requested === '/v1/customers').slice(-2);
  assert.deepEqual(
    attempts.map(({ status }) => status),
    ['reset', 200],
  );
  assert.equal(attempts[0].idempotency_key, attempts[1].idempotency_key);
});
