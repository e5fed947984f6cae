import { randomUUID } from 'node:crypto';
import { formatTimes, timestamp } from '../times.mjs';
import { amountFields, readAmount } from '../money.mjs';
import { unprocessable } from '../errors.mjs';

const STATUS = { pending: 'Pending', failed: 'Failed', paid: 'Paid', refunded: 'Refunded', partial_refund: 'Partial refund' };

export const orders = {
  relationships: ['store', 'customer', 'order-items', 'subscriptions', 'license-keys', 'discount-redemptions'],
  filters: { store_id: 'store_id', user_email: 'user_email' },
  attributes: (shop, order) => {
    const item = shop.all('order-items', 'order_id', order.id)[0];
    const amount = (name, value) => amountFields(name, value, order.currency, shop.settings);
    return {
      store_id: Number(order.store_id),
      customer_id: Number(order.customer_id),
      identifier: order.identifier,
      order_number: Number(order.id),
      user_name: order.user_name,
      user_email: order.user_email,
      currency: order.currency,
      currency_rate: '1.00000000',
      ...amount('subtotal', order.total),
      ...amount('setup_fee', 0),
      ...amount('discount_total', 0),
      ...amount('tax', 0),
      ...amount('total', order.total),
      ...amount('refunded_amount', order.refunded_amount),
      tax_name: null,
      tax_rate: '0.00',
      tax_inclusive: false,
      status: order.status,
      status_formatted: STATUS[order.status],
      refunded: order.refunded_amount > 0,
      refunded_at: timestamp(order.refunded_at),
      first_order_item: {
        id: Number(item.id),
        order_id: Number(order.id),
        product_id: Number(item.product_id),
        variant_id: Number(item.variant_id),
        price_id: Number(item.price_id),
        quantity: item.quantity,
        product_name: item.product_name,
        variant_name: item.variant_name,
        price: amount('price', item.price).price,
        ...formatTimes(item),
        test_mode: shop.testMode,
      },
      urls: { receipt: `https://stand-in.lemonsqueezy.example/my-orders/${order.identifier}` },
      ...formatTimes(order),
      test_mode: shop.testMode,
    };
  },
};

export function createOrder(shop, { customer, variant, quantity, total, currency, custom, created_at = shop.now() }) {
  const product = shop.find('products', variant.product_id);
  const order = shop.insert('orders', {
    store_id: product.store_id,
    customer_id: customer.id,
    user_name: customer.name,
    user_email: customer.email,
    identifier: randomUUID(),
    currency,
    total,
    refunded_amount: 0,
    refunded_at: null,
    status: 'paid',
    custom,
    created_at,
    updated_at: created_at,
  });
  const item = shop.insert('order-items', {
    order_id: order.id,
    product_id: product.id,
    variant_id: variant.id,
    price_id: variant.price_id,
    product_name: product.name,
    variant_name: variant.name,
    price: variant.price,
    quantity,
    created_at,
    updated_at: created_at,
  });
  return { order, item };
}

/** Refunds an order, in minor units; the rest of it by default. */
export function refundOrder(shop, order, amount = order.total - order.refunded_amount) {
  const refunded_amount = order.refunded_amount + amount;
  if (amount < 1 || refunded_amount > order.total) throw unprocessable('/data/attributes/amount', 'The amount is invalid.');
  const status = refunded_amount === order.total ? 'refunded' : 'partial_refund';
  shop.change(order, { refunded_amount, refunded_at: shop.now(), status });
  shop.emit('order_refunded', order, order.custom);
  return order;
}

function refund({ shop, path, attributes }) {
  const order = shop.get('orders', path.id);
  return refundOrder(shop, order, readAmount(attributes.amount, order.currency, shop.settings.amount_style));
}

export const orderRoutes = [['POST', '/v1/orders/:id/refund', refund]];
