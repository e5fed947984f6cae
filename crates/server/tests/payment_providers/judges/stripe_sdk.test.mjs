// The official Stripe SDK uses the stand-in: objects, lists, expansion, errors, keys and idempotency.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import Stripe from 'stripe';
import { createCatalog, startStandIn, stripeClient } from './processes.mjs';

const { address, child, control } = await startStandIn('stripe');
const stripe = stripeClient(address);

test('created_objects_can_be_retrieved_updated_and_deleted', async () => {
  const customer = await stripe.customers.create({ email: 'a@example.com', metadata: { plan: 'gold', old: '1' } });
  const updated = await stripe.customers.update(customer.id, { name: 'A', metadata: { old: '' } });
  assert.deepEqual({ ...updated.metadata }, { plan: 'gold' });
  assert.equal((await stripe.customers.retrieve(customer.id)).name, 'A');
  assert.equal((await stripe.customers.del(customer.id)).deleted, true);
  assert.equal((await stripe.customers.retrieve(customer.id)).deleted, true);
});

test('deleted_customer_cannot_check_out', async () => {
  const { price, customer } = await createCatalog(stripe);
  await stripe.customers.del(customer.id);
  const session = { mode: 'subscription', line_items: [{ price: price.id, quantity: 1 }], success_url: 'http://127.0.0.1:9/' };
  const missing = { statusCode: 400, code: 'resource_missing', param: 'customer' };
  await assert.rejects(stripe.checkout.sessions.create({ ...session, customer: customer.id }), missing);
  assert.equal((await stripe.checkout.sessions.create({ ...session, customer_email: 'a@example.com' })).customer, null);
});

test('lists_paginate_in_both_directions', async () => {
  const emails = [];
  for (let at = 0; at < 25; at += 1) {
    const { email } = await stripe.customers.create({ email: `page-${at}@example.com` });
    emails.unshift(email);
  }
  const seen = [];
  for await (const customer of stripe.customers.list({ limit: 7 })) seen.push(customer.email);
  assert.deepEqual(seen.slice(0, 25), emails);
  const first = await stripe.customers.list({ limit: 3 });
  assert.equal(first.has_more, true);
  const second = await stripe.customers.list({ limit: 3, starting_after: first.data[2].id });
  const back = await stripe.customers.list({ limit: 3, ending_before: second.data[0].id });
  assert.deepEqual(
    back.data.map(({ id }) => id),
    first.data.map(({ id }) => id),
  );
  const one = await stripe.customers.list({ email: 'page-7@example.com' });
  assert.deepEqual([one.data.length, one.has_more], [1, false]);
});

test('lists_leave_out_deleted_and_other_times', async () => {
  const [kept, deleted] = [await stripe.customers.create({}), await stripe.customers.create({})];
  await stripe.customers.del(deleted.id);
  const ids = async (params) => (await stripe.customers.list(params)).data.map(({ id }) => id);
  assert.equal((await ids({ limit: 1 }))[0], kept.id);
  assert.deepEqual(await ids({ created: { gt: kept.created + 60 } }), []);
  assert.ok((await ids({ created: { gte: kept.created, lte: kept.created } })).includes(kept.id));
  assert.deepEqual(await ids({ created: { lt: kept.created - 3600 } }), []);
});

test('subscription_has_the_period_on_its_items_since_basil', async () => {
  const { price, customer } = await createCatalog(stripe);
  const created = await stripe.subscriptions.create({ customer: customer.id, items: [{ price: price.id, quantity: 2 }] });
  assert.equal(created.status, 'active');
  assert.equal(created.items.data[0].quantity, 2);
  assert.ok(created.items.data[0].current_period_end > created.created);
  assert.equal('current_period_end' in created, false);
  const old = await stripe.subscriptions.retrieve(created.id, {}, { apiVersion: '2024-06-20' });
  assert.equal(old.current_period_end, created.items.data[0].current_period_end);
  assert.equal('current_period_end' in old.items.data[0], false);
});

test('invoice_names_its_subscription_in_both_shapes', async () => {
  const { price, customer } = await createCatalog(stripe);
  const subscription = await stripe.subscriptions.create({
    customer: customer.id,
    items: [{ price: price.id }],
    metadata: { user: 'u1' },
  });
  const invoice = await stripe.invoices.retrieve(subscription.latest_invoice, { expand: ['payments'] });
  assert.equal(invoice.parent.subscription_details.subscription, subscription.id);
  assert.equal(invoice.parent.subscription_details.metadata.user, 'u1');
  assert.equal('subscription' in invoice, false);
  const intent = invoice.payments.data[0].payment.payment_intent;
  const old = await stripe.invoices.retrieve(invoice.id, {}, { apiVersion: '2024-06-20' });
  assert.deepEqual([old.subscription, old.payment_intent, old.paid], [subscription.id, intent, true]);
  assert.equal('parent' in old, false);
  const listed = await stripe.invoicePayments.list({ payment: { type: 'payment_intent', payment_intent: intent } });
  assert.deepEqual(
    listed.data.map((payment) => payment.invoice),
    [invoice.id],
  );
  const charge = await stripe.charges.retrieve((await stripe.paymentIntents.retrieve(intent)).latest_charge);
  assert.equal('invoice' in charge, false);
  assert.equal((await stripe.charges.retrieve(charge.id, {}, { apiVersion: '2024-06-20' })).invoice, invoice.id);
});

test('expansion_replaces_identifiers', async () => {
  const { price, customer, product } = await createCatalog(stripe);
  await stripe.subscriptions.create({ customer: customer.id, items: [{ price: price.id }] });
  const {
    data: [subscription],
  } = await stripe.subscriptions.list({
    customer: customer.id,
    expand: ['data.customer', 'data.latest_invoice.payments', 'data.items.data.price'],
  });
  assert.equal(subscription.customer.email, customer.email);
  assert.equal(subscription.latest_invoice.payments.data[0].status, 'paid');
  assert.equal((await stripe.prices.retrieve(price.id, { expand: ['product'] })).product.id, product.id);
  await assert.rejects(stripe.prices.retrieve(price.id, { expand: ['nonsense'] }), Stripe.errors.StripeInvalidRequestError);
});

test('errors_have_the_classes_of_the_sdk', async () => {
  const { price, customer } = await createCatalog(stripe, { card: 'pm_card_chargeCustomerFail' });
  const cases = [
    [
      () => stripe.customers.retrieve('cus_none'),
      Stripe.errors.StripeInvalidRequestError,
      { code: 'resource_missing', statusCode: 404 },
    ],
    [
      () => stripe.customers.create({ nonsense: '1' }),
      Stripe.errors.StripeInvalidRequestError,
      { code: 'parameter_unknown', param: 'nonsense' },
    ],
    [() => stripe.prices.create({ currency: 'usd' }), Stripe.errors.StripeInvalidRequestError, { code: 'parameter_missing' }],
    [() => stripe.customers.list({ limit: 101 }), Stripe.errors.StripeInvalidRequestError, { param: 'limit' }],
    [
      () => stripe.customers.list({ starting_after: 'cus_none' }),
      Stripe.errors.StripeInvalidRequestError,
      { param: 'starting_after' },
    ],
    [
      () => stripeClient(address, { key: 'nonsense' }).customers.list(),
      Stripe.errors.StripeAuthenticationError,
      { statusCode: 401 },
    ],
    [
      () =>
        stripe.subscriptions.create({
          customer: customer.id,
          items: [{ price: price.id }],
          payment_behavior: 'error_if_incomplete',
        }),
      Stripe.errors.StripeCardError,
      { code: 'card_declined', statusCode: 402 },
    ],
    [
      () => stripe.subscriptions.retrieve('sub_none', {}, { apiVersion: 'nonsense' }),
      Stripe.errors.StripeInvalidRequestError,
      { statusCode: 400 },
    ],
  ];
  for (const [call, type, fields] of cases) {
    const error = await call().then(
      () => assert.fail('no error'),
      (reason) => reason,
    );
    assert.ok(error instanceof type, `${error}`);
    for (const [name, value] of Object.entries(fields)) assert.equal(error[name], value, `${error}`);
  }
});

test('modes_are_separate', async () => {
  const live = stripeClient(address, { key: 'sk_live_judge' });
  const customer = await live.customers.create({ email: 'live@example.com' });
  assert.equal(customer.livemode, true);
  await assert.rejects(stripe.customers.retrieve(customer.id), /a similar object exists in live mode, but a test mode key/);
  const insecure = live.webhookEndpoints.create({ url: 'http://127.0.0.1:9/', enabled_events: ['*'] });
  await assert.rejects(insecure, { code: 'url_invalid' });
});

test('restricted_and_revoked_keys_are_rejected', async () => {
  const restricted = stripeClient(address, { key: 'rk_test_reader' });
  await restricted.customers.create({});
  await control('POST', '/keys', { key: 'rk_test_reader', permissions: { customer: 'read', subscription: 'read' } });
  assert.equal((await restricted.customers.list({ limit: 1 })).data.length, 1);
  await assert.rejects(
    restricted.customers.create({}),
    (error) => error instanceof Stripe.errors.StripePermissionError && error.message.includes('rak_customer_write'),
  );
  await assert.rejects(restricted.invoices.list(), Stripe.errors.StripePermissionError);
  await control('POST', '/keys', { key: 'rk_test_reader', revoked: true });
  await assert.rejects(restricted.customers.list(), Stripe.errors.StripeAuthenticationError);
});

test('idempotency_key_repeats_the_response_and_rejects_other_parameters', async () => {
  const options = { idempotencyKey: 'key-1' };
  const first = await stripe.customers.create({ email: 'once@example.com' }, options);
  const second = await stripe.customers.create({ email: 'once@example.com' }, options);
  assert.equal(second.id, first.id);
  assert.equal(second.lastResponse.headers['idempotent-replayed'], 'true');
  await assert.rejects(stripe.customers.create({ email: 'other@example.com' }, options), Stripe.errors.StripeIdempotencyError);
});

test('account_names_itself', async () => {
  const account = await stripe.accounts.retrieveCurrent();
  assert.match(account.id, /^acct_/);
});

test('requests_are_counted_by_route', async () => {
  await control('DELETE', '/requests');
  const customer = await stripe.customers.create({});
  await stripe.customers.retrieve(customer.id);
  await stripe.customers.retrieve(customer.id);
  const counts = await control('GET', '/requests');
  assert.deepEqual(counts.by_route, { 'POST /v1/customers': 1, 'GET /v1/customers/:id': 2 });
  assert.equal(counts.by_path[`GET /v1/customers/${customer.id}`], 2);
});

test('stand_in_listens_on_loopback_and_ends_with_its_input', async () => {
  assert.equal(new URL(address).hostname, '127.0.0.1');
  const other = await startStandIn('stripe');
  const ended = new Promise((resolve) => {
    other.child.on('exit', resolve);
  });
  other.child.stdin.end();
  assert.equal(await ended, 0);
  const third = await startStandIn('stripe');
  const killed = new Promise((resolve) => {
    third.child.on('exit', resolve);
  });
  third.child.kill('SIGTERM');
  assert.equal(await killed, 0);
  assert.equal(child.exitCode, null);
});
