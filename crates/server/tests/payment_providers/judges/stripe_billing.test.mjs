// Histories of subscriptions: trials, renewals, failures, recoveries, upgrades, pauses, refunds, disputes, cancellations.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCatalog, startStandIn, stripeClient } from './processes.mjs';

const DAY = 86_400;
const { address, control } = await startStandIn('stripe', '--now', '1798761600');
const stripe = stripeClient(address);

const advance = (seconds) => control('POST', '/clock', { seconds });

async function subscribe(options = {}, catalog = undefined) {
  const { price, customer } = catalog ?? (await createCatalog(stripe));
  const subscription = await stripe.subscriptions.create({ customer: customer.id, items: [{ price: price.id }], ...options });
  return { subscription, price, customer };
}

async function invoicesOf(subscription) {
  const { data } = await stripe.invoices.list({ subscription, limit: 100 });
  return data;
}

test('trial_ends_with_the_first_payment', async () => {
  const { subscription } = await subscribe({ trial_period_days: 14 });
  assert.equal(subscription.status, 'trialing');
  assert.deepEqual(
    (await invoicesOf(subscription.id)).map(({ status, total }) => [status, total]),
    [['paid', 0]],
  );
  await advance(14 * DAY);
  const active = await stripe.subscriptions.retrieve(subscription.id);
  assert.equal(active.status, 'active');
  assert.equal(active.items.data[0].current_period_start, subscription.trial_end);
  const [latest] = await invoicesOf(subscription.id);
  assert.deepEqual([latest.status, latest.amount_paid, latest.billing_reason], ['paid', 1999, 'subscription_cycle']);
  const types = (await stripe.events.list({ type: 'customer.subscription.trial_will_end' })).data;
  assert.equal(types[0].data.object.id, subscription.id);
});

test('trial_without_a_card_pauses_if_asked', async () => {
  const { price } = await createCatalog(stripe);
  const customer = await stripe.customers.create({});
  const { subscription } = await subscribe(
    {
      trial_period_days: 7,
      trial_settings: { end_behavior: { missing_payment_method: 'pause' } },
    },
    { price, customer },
  );
  await advance(7 * DAY);
  assert.equal((await stripe.subscriptions.retrieve(subscription.id)).status, 'paused');
});

test('failed_renewal_is_retried_and_recovers', async () => {
  const { subscription } = await subscribe();
  await control('POST', `/payments/${subscription.id}/outcome`, { outcome: 'fail' });
  await advance(31 * DAY);
  assert.equal((await stripe.subscriptions.retrieve(subscription.id)).status, 'past_due');
  const [open] = await invoicesOf(subscription.id);
  assert.deepEqual([open.status, open.attempt_count, open.amount_paid], ['open', 1, 0]);
  assert.ok(open.next_payment_attempt > open.created);
  await control('POST', `/subscriptions/${subscription.id}/recover`);
  assert.equal((await stripe.subscriptions.retrieve(subscription.id)).status, 'active');
  const [paid] = await invoicesOf(subscription.id);
  assert.deepEqual([paid.id, paid.status, paid.attempt_count, paid.amount_paid], [open.id, 'paid', 2, 1999]);
});

test('last_failed_attempt_ends_the_subscription_as_the_account_says', async () => {
  for (const [setting, status] of [
    ['cancel', 'canceled'],
    ['unpaid', 'unpaid'],
    ['past_due', 'past_due'],
  ]) {
    await control('POST', '/settings', { after_retries: setting });
    const { subscription } = await subscribe();
    await control('POST', `/payments/${subscription.id}/outcome`, { outcome: 'fail' });
    await advance(31 * DAY + 15 * DAY);
    const ended = await stripe.subscriptions.retrieve(subscription.id);
    assert.equal(ended.status, status, setting);
    if (status === 'canceled') assert.equal(ended.cancellation_details.reason, 'payment_failed');
    const [invoice] = await invoicesOf(subscription.id);
    assert.equal(invoice.attempt_count, 4);
    assert.equal(invoice.next_payment_attempt, null);
  }
  await control('POST', '/settings', { after_retries: 'cancel' });
});

test('declined_first_payment_leaves_an_incomplete_subscription_that_expires', async () => {
  const { subscription } = await subscribe({}, await createCatalog(stripe, { card: 'pm_card_chargeCustomerFail' }));
  assert.equal(subscription.status, 'incomplete');
  await advance(DAY);
  assert.equal((await stripe.subscriptions.retrieve(subscription.id)).status, 'incomplete_expired');
  assert.deepEqual(
    (await invoicesOf(subscription.id)).map(({ status }) => status),
    ['void'],
  );
});

test('month_end_renewals_keep_the_anchor', async () => {
  await control('POST', '/clock', { to: Date.UTC(2028, 0, 31) / 1000 });
  const { subscription } = await subscribe();
  const ends = [];
  for (let count = 0; count < 3; count += 1) {
    const { items } = await stripe.subscriptions.retrieve(subscription.id);
    ends.push(new Date(items.data[0].current_period_end * 1000).toISOString().slice(0, 10));
    await control('POST', `/subscriptions/${subscription.id}/renew`);
  }
  assert.deepEqual(ends, ['2028-02-29', '2028-03-31', '2028-04-30']);
});

test('upgrade_is_prorated_now_or_later', async () => {
  const { subscription, product } = { ...(await subscribe()), ...(await createCatalog(stripe)) };
  const bigger = await stripe.prices.create({
    product: product.id,
    currency: 'usd',
    unit_amount: 4999,
    recurring: { interval: 'month' },
  });
  const items = [{ id: subscription.items.data[0].id, price: bigger.id }];
  const upgraded = await stripe.subscriptions.update(subscription.id, { items, proration_behavior: 'always_invoice' });
  assert.equal(upgraded.items.data[0].price.id, bigger.id);
  const [invoice] = await invoicesOf(subscription.id);
  assert.deepEqual([invoice.billing_reason, invoice.status, invoice.total], ['subscription_update', 'paid', 3000]);
  assert.deepEqual(
    invoice.lines.data.map(({ amount }) => amount),
    [-1999, 4999],
  );
  await stripe.subscriptions.update(subscription.id, { items: [{ id: items[0].id, quantity: 2 }] });
  await advance(31 * DAY);
  const [renewal] = await invoicesOf(subscription.id);
  assert.equal(renewal.total, -4999 + 9998 + 9998);
});

test('new_billing_cycle_is_invoiced_immediately', async () => {
  const { subscription, customer } = await subscribe();
  await advance(10 * DAY);
  const failing = await stripe.paymentMethods.attach('pm_card_chargeCustomerFail', { customer: customer.id });
  const restarted = await stripe.subscriptions.update(subscription.id, {
    default_payment_method: failing.id,
    billing_cycle_anchor: 'now',
    proration_behavior: 'none',
  });
  assert.equal(restarted.items.data[0].current_period_start, subscription.created + 10 * DAY);
  assert.equal(restarted.status, 'past_due');
  const [invoice] = await invoicesOf(subscription.id);
  assert.deepEqual([invoice.status, invoice.total, invoice.attempt_count], ['open', 1999, 1]);
});

test('paused_collection_keeps_the_status_and_voids_invoices', async () => {
  for (const [behavior, status] of [
    ['void', 'void'],
    ['mark_uncollectible', 'uncollectible'],
    ['keep_as_draft', 'draft'],
  ]) {
    const { subscription } = await subscribe();
    const paused = await stripe.subscriptions.update(subscription.id, { pause_collection: { behavior } });
    assert.deepEqual([paused.status, paused.pause_collection.behavior], ['active', behavior]);
    await control('POST', `/subscriptions/${subscription.id}/renew`);
    assert.equal((await invoicesOf(subscription.id))[0].status, status);
    const resumed = await stripe.subscriptions.update(subscription.id, { pause_collection: '' });
    assert.equal(resumed.pause_collection, null);
  }
});

test('cancellation_at_period_end_can_be_undone', async () => {
  const { subscription } = await subscribe();
  const cancelled = await stripe.subscriptions.update(subscription.id, { cancel_at_period_end: true });
  assert.equal(cancelled.status, 'active');
  assert.equal(cancelled.cancel_at, cancelled.items.data[0].current_period_end);
  const undone = await stripe.subscriptions.update(subscription.id, { cancel_at_period_end: false });
  assert.deepEqual([undone.cancel_at, undone.canceled_at], [null, null]);
  await stripe.subscriptions.update(subscription.id, { cancel_at: subscription.created + 5 * DAY });
  await advance(6 * DAY);
  const ended = await stripe.subscriptions.retrieve(subscription.id);
  assert.deepEqual([ended.status, ended.ended_at], ['canceled', subscription.created + 5 * DAY]);
  await assert.rejects(stripe.subscriptions.cancel(subscription.id), { code: 'resource_missing' });
});

test('refunds_and_disputes_leave_the_invoice_paid', async () => {
  const { subscription } = await subscribe();
  const [invoice] = await invoicesOf(subscription.id);
  const refund = await control('POST', `/invoices/${invoice.id}/refund`, { amount: 500 });
  await stripe.refunds.create({ payment_intent: refund.payment_intent });
  const charge = await stripe.charges.retrieve(refund.charge, { expand: ['refunds'] });
  assert.deepEqual([charge.amount_refunded, charge.refunded, charge.refunds.data.length], [1999, true, 2]);
  await assert.rejects(stripe.refunds.create({ charge: charge.id }), { code: 'charge_already_refunded' });
  const { subscription: other } = await subscribe();
  const [disputed] = await invoicesOf(other.id);
  for (const status of ['won', 'lost']) {
    const dispute = await control('POST', `/invoices/${disputed.id}/dispute`, {});
    assert.equal((await stripe.disputes.retrieve(dispute.id)).status, 'needs_response');
    await control('POST', `/disputes/${dispute.id}/close`, { status });
    assert.equal((await stripe.disputes.retrieve(dispute.id)).status, status);
  }
  assert.equal((await stripe.invoices.retrieve(disputed.id)).status, 'paid');
});

test('checkout_session_in_payment_mode_creates_an_invoice_that_its_payment_has_paid', async () => {
  const price = await stripe.prices.create({ currency: 'usd', unit_amount: 29_900, product_data: { name: 'Forever' } });
  const metadata = { perennial_user: 'u1' };
  const params = {
    mode: 'payment',
    line_items: [{ price: price.id, quantity: 1 }],
    success_url: 'https://example.com/',
    payment_intent_data: { metadata },
    invoice_creation: { enabled: true, invoice_data: { metadata } },
  };
  const session = await stripe.checkout.sessions.create(params);
  await control('POST', `/checkout_sessions/${session.id}/complete`, { email: 'b@example.com' });
  const paid = await stripe.checkout.sessions.retrieve(session.id, { expand: ['invoice', 'invoice.payments', 'payment_intent'] });
  assert.deepEqual([paid.invoice.status, paid.invoice.total, paid.invoice.parent], ['paid', 29_900, null]);
  assert.deepEqual({ ...paid.invoice.metadata }, metadata);
  assert.deepEqual({ ...paid.payment_intent.metadata }, metadata);
  assert.equal(paid.invoice.lines.data[0].pricing.price_details.price, price.id);
  assert.equal(paid.invoice.payments.data[0].payment.payment_intent, paid.payment_intent.id);
  await assert.rejects(
    stripe.checkout.sessions.create({ ...params, mode: 'subscription', payment_intent_data: undefined }),
    /recurring price|invoice creation/,
  );
});

test('checkout_session_creates_the_subscription_with_its_metadata', async () => {
  const { price } = await createCatalog(stripe);
  const session = await stripe.checkout.sessions.create({
    mode: 'subscription',
    line_items: [{ price: price.id, quantity: 1 }],
    success_url: 'http://127.0.0.1:9/done?s={CHECKOUT_SESSION_ID}',
    client_reference_id: 'user-1',
    subscription_data: { metadata: { user: 'user-1' } },
  });
  const page = await fetch(session.url, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'email=payer%40example.com',
  });
  assert.deepEqual([page.status, page.headers.get('location')], [303, `http://127.0.0.1:9/done?s=${session.id}`]);
  const paid = await stripe.checkout.sessions.retrieve(session.id, { expand: ['subscription', 'customer'] });
  assert.deepEqual([paid.status, paid.payment_status, paid.client_reference_id], ['complete', 'paid', 'user-1']);
  assert.equal(paid.subscription.metadata.user, 'user-1');
  assert.equal(paid.customer.email, 'payer@example.com');
  const declined = await stripe.checkout.sessions.create({
    mode: 'subscription',
    line_items: [{ price: price.id }],
    success_url: 'http://127.0.0.1:9/',
  });
  await assert.rejects(
    control('POST', `/checkout_sessions/${declined.id}/complete`, { card: 'pm_card_chargeDeclined' }),
    /declined/,
  );
  assert.equal((await stripe.checkout.sessions.retrieve(declined.id)).status, 'open');
  await advance(2 * DAY);
  assert.equal((await stripe.checkout.sessions.retrieve(declined.id)).status, 'expired');
});

test('portal_session_has_a_url', async () => {
  const { customer } = await createCatalog(stripe);
  const session = await stripe.billingPortal.sessions.create({ customer: customer.id, return_url: 'http://127.0.0.1:9/' });
  assert.match(await (await fetch(session.url)).text(), new RegExp(customer.id));
});

test('portal_pays_open_invoices_with_a_new_card', async () => {
  const { customer, price } = await createCatalog(stripe);
  const items = [{ price: price.id }];
  const { id } = await stripe.subscriptions.create({ customer: customer.id, items });
  await control('POST', `/payments/${id}/outcome`, { outcome: 'fail' });
  await control('POST', `/subscriptions/${id}/renew`, {});
  assert.equal((await stripe.subscriptions.retrieve(id)).status, 'past_due');
  const session = await stripe.billingPortal.sessions.create({ customer: customer.id, return_url: 'http://127.0.0.1:9/' });
  const page = await fetch(session.url, { method: 'POST', redirect: 'manual' });
  assert.deepEqual([page.status, page.headers.get('location')], [303, 'http://127.0.0.1:9/']);
  const renewed = await stripe.subscriptions.retrieve(id, { expand: ['latest_invoice'] });
  assert.deepEqual([renewed.status, renewed.latest_invoice.status], ['active', 'paid']);
});

test('events_are_listed_for_thirty_days', async () => {
  const { customer } = await createCatalog(stripe);
  const named = async () =>
    (await stripe.events.list({ types: ['customer.created', 'price.created'], limit: 100 })).data.some(
      ({ data }) => data.object.id === customer.id,
    );
  assert.equal(await named(), true);
  await advance(29 * DAY);
  assert.equal(await named(), true);
  await advance(2 * DAY);
  assert.equal(await named(), false);
});

test('overrides_replace_fields_of_an_object', async () => {
  const { subscription } = await subscribe();
  await control('POST', `/objects/${subscription.id}/overrides`, { fields: { status: 'hibernating' } });
  assert.equal((await stripe.subscriptions.retrieve(subscription.id)).status, 'hibernating');
});
