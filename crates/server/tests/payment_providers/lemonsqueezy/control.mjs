// The control API of the Lemon Squeezy stand-in. `?mode=live` selects the live shop.

import { advanceClock } from '../stand_in/advance.mjs';
import { controlHandler, sharedRoutes } from '../stand_in/control.mjs';
import { cancelSubscription, dueAt, expireSubscription, renewSubscription, retryPayment, runDue } from './billing.mjs';
import { loadBulk } from './bulk.mjs';
import { AMOUNT_STYLES } from './money.mjs';
import { completeCheckout } from './resources/checkouts.mjs';
import { refundOrder } from './resources/orders.mjs';
import { createProduct } from './resources/products.mjs';
import { createStore } from './resources/stores.mjs';
import { refundInvoice } from './resources/subscription_invoices.mjs';
import { totals } from './totals.mjs';

export function lemonSqueezyControl({ clock, shops, outbox, faults, requests, keys, settings, view }) {
  const advance = (target) => advanceClock(clock, timedRecords(shops), target, { dueAt, runDue });
  const shopOf = (query) => shops[query.get('mode') ?? 'test'];
  const on =
    (type, action) =>
    ({ path, body, query }) => {
      const shop = shopOf(query);
      const record = shop.get(type, path.id);
      return view(shop, action(shop, record, body) ?? record);
    };
  return controlHandler([
    ...sharedRoutes({ clock, outbox, faults, requests, advance }),
    [
      'POST',
      '/settings',
      ({ body }) => {
        if (body.amount_style && !AMOUNT_STYLES.includes(body.amount_style)) {
          throw new Error(`amount_style must be one of ${AMOUNT_STYLES.join(', ')}`);
        }
        return Object.assign(settings, body);
      },
    ],
    [
      'POST',
      '/keys',
      ({ body }) => {
        if (body.revoked) keys.revoked.add(body.key);
        if (body.mode === 'live') keys.live.add(body.key);
        return {};
      },
    ],
    ['POST', '/stores', ({ body, query }) => view(shopOf(query), createStore(shopOf(query), body))],
    [
      'POST',
      '/products',
      ({ body, query }) => {
        const shop = shopOf(query);
        const { product, variants } = createProduct(shop, body);
        return { product: view(shop, product), variants: variants.map((variant) => view(shop, variant)) };
      },
    ],
    [
      'POST',
      '/checkouts/:id/complete',
      ({ path, body, query }) => {
        const shop = shopOf(query);
        const sold = completeCheckout(shop, shop.get('checkouts', path.id), body);
        return Object.fromEntries(Object.entries(sold).map(([name, record]) => [name, view(shop, record)]));
      },
    ],
    // The choice holds until it is changed.
    [
      'POST',
      '/subscriptions/:id/outcome',
      on('subscriptions', (shop, { id }, { outcome }) => {
        if (!['succeed', 'fail'].includes(outcome)) throw new Error('outcome must be succeed or fail');
        shop.outcomes.set(id, outcome);
      }),
    ],
    // Starts the next period without moving the clock.
    [
      'POST',
      '/subscriptions/:id/renew',
      on('subscriptions', (shop, subscription, { outcome }) => renewSubscription(shop, subscription, outcome)),
    ],
    [
      'POST',
      '/subscriptions/:id/recover',
      on('subscriptions', (shop, subscription) => retryPayment(shop, subscription, 'succeed')),
    ],
    ['POST', '/subscriptions/:id/cancel', on('subscriptions', (shop, subscription) => cancelSubscription(shop, subscription))],
    ['POST', '/subscriptions/:id/expire', on('subscriptions', (shop, subscription) => expireSubscription(shop, subscription))],
    [
      'POST',
      '/subscription-invoices/:id/refund',
      on('subscription-invoices', (shop, invoice, { amount }) => refundInvoice(shop, invoice, amount)),
    ],
    ['POST', '/orders/:id/refund', on('orders', (shop, order, { amount }) => refundOrder(shop, order, amount))],
    // Attributes that replace those of the record in responses and events: unknown words, missing values.
    [
      'POST',
      '/objects/:type/:id/overrides',
      ({ path, body, query }) => {
        const shop = shopOf(query);
        const record = shop.get(path.type, path.id);
        record.overrides = body.fields ?? undefined;
        if (body.event) shop.emit(body.event, record, record.custom);
        return view(shop, record);
      },
    ],
    // Sends an event of any name for a record, with a new id.
    [
      'POST',
      '/events',
      ({ body, query }) => {
        const shop = shopOf(query);
        const record = shop.get(body.type, body.id);
        return { id: shop.emit(body.name, record, record.custom).id };
      },
    ],
    ['POST', '/bulk', ({ body, query }) => loadBulk(shopOf(query), body)],
    ['GET', '/totals', ({ query }) => totals(shopOf(query))],
  ]);
}

function* timedRecords(shops) {
  for (const shop of Object.values(shops)) {
    for (const subscription of shop.all('subscriptions')) yield [shop, subscription];
  }
}
