// 20,000 subscriptions and 100,000 invoices are loaded, listed and totaled.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startStandIn, stripeClient } from './processes.mjs';

const { address, control } = await startStandIn('stripe');
const stripe = stripeClient(address);
const currencies = ['usd', 'jpy', 'kwd', 'isk', 'ugx', 'mga'];

async function* pages(path, parameters = '') {
  for (let after = ''; ;) {
    const response = await fetch(`${address}/v1/${path}?limit=100${parameters}${after}`, {
      headers: { authorization: 'Bearer sk_test_judge' },
    });
    const { data, has_more } = await response.json();
    yield* data;
    if (!has_more) return;
    after = `&starting_after=${data.at(-1).id}`;
  }
}

test('bulk_loads_are_listed_completely', async () => {
  const sizes = { customers: 20_000, subscriptions: 20_000, invoices: 100_000 };
  assert.deepEqual(await control('POST', '/bulk', { ...sizes, currencies }), sizes);
  const totals = await control('GET', '/totals');
  const statuses = {};
  for await (const { status } of pages('subscriptions', '&status=all')) statuses[status] = (statuses[status] ?? 0) + 1;
  assert.deepEqual(statuses, totals.subscriptions);
  const start = Date.now();
  const sums = {};
  const seen = new Set();
  for await (const { id, status, currency, total } of pages('invoices')) {
    seen.add(id);
    const key = `${status} ${currency}`;
    sums[key] = (sums[key] ?? 0) + total;
  }
  assert.equal(seen.size, sizes.invoices);
  const expected = Object.entries(totals.invoices).flatMap(([status, byCurrency]) =>
    Object.entries(byCurrency).map(([currency, { total }]) => [`${status} ${currency}`, total]),
  );
  assert.deepEqual(sums, Object.fromEntries(expected));
  console.log(`# listed ${seen.size} invoices in ${Date.now() - start} ms`);
});

test('bulk_invoices_lead_to_their_payments', async () => {
  const {
    data: [invoice],
  } = await stripe.invoices.list({ status: 'paid', limit: 1, expand: ['data.payments'] });
  const intent = invoice.payments.data[0].payment.payment_intent;
  const { data } = await stripe.invoicePayments.list({ payment: { type: 'payment_intent', payment_intent: intent } });
  assert.equal(data[0].invoice, invoice.id);
  await stripe.refunds.create({ payment_intent: intent });
  const customer = await stripe.customers.retrieve(invoice.customer);
  const listed = await stripe.subscriptions.list({ customer: customer.id, status: 'all' });
  assert.equal(listed.data[0].id, invoice.parent.subscription_details.subscription);
});
