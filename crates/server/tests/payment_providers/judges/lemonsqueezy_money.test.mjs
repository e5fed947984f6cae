// Amounts and their text in the three ways in which Lemon Squeezy may write them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectSdk, ok } from './lemonsqueezy_client.mjs';
import { startStandIn } from './processes.mjs';

const { address, control } = await startStandIn('lemonsqueezy');
const sdk = connectSdk(address);
const {
  data: [store],
} = await ok(sdk.listStores());
const {
  variants: [variant],
} = await control('POST', '/products', { name: 'Pro', variants: [{ price: 1000, interval: 'month' }] });

/** Ten units of each currency in ISO 4217 minor units. */
const TEN = { USD: 1000, JPY: 10, KWD: 10_000, ISK: 10, UGX: 10, MGA: 1000 };
const STYLES = {
  minor: {
    USD: [1000, '$10.00'],
    JPY: [10, '¥10'],
    KWD: [10_000, 'KWD 10.000'],
    ISK: [10, 'ISK 10'],
    UGX: [10, 'UGX 10'],
    MGA: [1000, 'MGA 10.00'],
  },
  hundredths: {
    USD: [1000, '$10.00'],
    JPY: [1000, '¥10.00'],
    KWD: [1000, 'KWD 10.00'],
    ISK: [1000, 'ISK 10.00'],
    UGX: [1000, 'UGX 10.00'],
    MGA: [1000, 'MGA 10.00'],
  },
  inconsistent: {
    USD: [1000, '$10.00'],
    JPY: [1000, '¥10'],
    KWD: [1000, 'KWD 10.000'],
    ISK: [1000, 'ISK 10'],
    UGX: [1000, 'UGX 10'],
    MGA: [1000, 'MGA 10.00'],
  },
};

test('invoices_write_amounts_in_the_chosen_style', async () => {
  for (const [amount_style, expected] of Object.entries(STYLES)) {
    await control('POST', '/settings', { amount_style });
    for (const [currency, price] of Object.entries(TEN)) {
      const { data: checkout } = await ok(sdk.createCheckout(store.id, variant.id));
      const { invoice } = await control('POST', `/checkouts/${checkout.id}/complete`, { currency, price });
      const { attributes } = (await ok(sdk.getSubscriptionInvoice(invoice.id))).data;
      const [total, text] = expected[currency];
      assert.deepEqual(
        [attributes.total, attributes.total_formatted.replaceAll('\u00a0', ' ')],
        [total, text],
        `${amount_style} ${currency}`,
      );
      if (currency !== 'USD') assert.notEqual(attributes.total_usd, total);
      const refunded = await ok(sdk.issueSubscriptionInvoiceRefund(invoice.id, total));
      assert.equal(refunded.data.attributes.status, 'refunded');
    }
  }
  const totals = await control('GET', '/totals');
  const refunds = Object.fromEntries(
    Object.entries(totals.invoices.refunded).map(([currency, { refunded }]) => [currency, refunded / 3]),
  );
  assert.deepEqual(refunds, TEN);
});
