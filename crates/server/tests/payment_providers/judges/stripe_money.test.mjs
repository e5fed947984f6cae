// Amounts as Stripe writes them: the minor unit of ISO 4217, except ISK, UGX and MGA.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCatalog, startStandIn, stripeClient } from './processes.mjs';

const { address, control } = await startStandIn('stripe');
const stripe = stripeClient(address);

/** The same ten units of each currency; 10 ISK and 10 UGX have two decimals at Stripe, 10 MGA none. */
const TEN = { usd: 1000, jpy: 10, kwd: 10_000, isk: 1000, ugx: 1000, mga: 10 };

test('invoices_have_the_amount_of_their_price', async () => {
  for (const [currency, unit_amount] of Object.entries(TEN)) {
    const { price, customer } = await createCatalog(stripe, { currency, unit_amount });
    const subscription = await stripe.subscriptions.create({
      customer: customer.id,
      items: [{ price: price.id }],
      expand: ['latest_invoice'],
    });
    const invoice = subscription.latest_invoice;
    assert.deepEqual([invoice.currency, invoice.total, invoice.amount_paid], [currency, unit_amount, unit_amount]);
    const refund = await control('POST', `/invoices/${invoice.id}/refund`, {});
    assert.deepEqual([refund.amount, refund.currency], [unit_amount, currency]);
  }
  const totals = await control('GET', '/totals');
  const paid = Object.fromEntries(
    Object.entries(totals.invoices.paid).map(([currency, { amount_paid }]) => [currency, amount_paid]),
  );
  assert.deepEqual(paid, TEN);
  assert.deepEqual(totals.refunded, TEN);
});

test('balance_reduces_what_is_due_and_paid', async () => {
  const { price, customer } = await createCatalog(stripe, { currency: 'usd', unit_amount: 1999 });
  await stripe.customers.update(customer.id, { balance: -2500 });
  const { id } = await stripe.subscriptions.create({ customer: customer.id, items: [{ price: price.id }] });
  const latest = async () => (await stripe.subscriptions.retrieve(id, { expand: ['latest_invoice'] })).latest_invoice;
  const amounts = ({ total, amount_due, amount_paid, starting_balance, ending_balance }) => [
    total,
    amount_due,
    amount_paid,
    starting_balance,
    ending_balance,
  ];
  assert.deepEqual(amounts(await latest()), [1999, 0, 0, -2500, -501]);
  await control('POST', `/subscriptions/${id}/renew`, {});
  assert.deepEqual(amounts(await latest()), [1999, 1498, 1498, -501, 0]);
  assert.equal((await stripe.customers.retrieve(customer.id)).balance, 0);
});

test('amounts_that_cannot_be_charged_are_rejected', async () => {
  const product = await stripe.products.create({ name: 'Odd' });
  for (const [currency, unit_amount] of [
    ['isk', 1050],
    ['ugx', 1],
    ['kwd', 5125],
  ]) {
    await assert.rejects(
      stripe.prices.create({ product: product.id, currency, unit_amount }),
      { param: 'unit_amount' },
      currency,
    );
  }
});
