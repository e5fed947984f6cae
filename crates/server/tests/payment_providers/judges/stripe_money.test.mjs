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
