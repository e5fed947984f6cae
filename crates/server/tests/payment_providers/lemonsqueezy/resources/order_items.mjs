import { formatTimes } from '../times.mjs';
import { writeAmount } from '../money.mjs';

export const orderItems = {
  relationships: ['order', 'product', 'variant'],
  filters: { order_id: 'order_id', product_id: 'product_id', variant_id: 'variant_id' },
  attributes: (shop, item) => ({
    order_id: Number(item.order_id),
    product_id: Number(item.product_id),
    variant_id: Number(item.variant_id),
    price_id: Number(item.price_id),
    product_name: item.product_name,
    variant_name: item.variant_name,
    price: writeAmount(item.price, shop.find('orders', item.order_id).currency, shop.settings.amount_style),
    quantity: item.quantity,
    ...formatTimes(item),
    test_mode: shop.testMode,
  }),
};
