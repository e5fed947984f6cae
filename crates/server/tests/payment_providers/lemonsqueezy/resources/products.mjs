import { formatTimes } from '../times.mjs';
import { createVariant } from './variants.mjs';
import { formatAmount, writeAmount } from '../money.mjs';

export const products = {
  relationships: ['store', 'variants'],
  filters: { store_id: 'store_id' },
  attributes: (shop, product) => {
    const { currency } = shop.find('stores', product.store_id);
    const style = shop.settings.amount_style;
    return {
      store_id: Number(product.store_id),
      name: product.name,
      slug: product.slug,
      description: '',
      status: 'published',
      status_formatted: 'Published',
      thumb_url: '',
      large_thumb_url: '',
      price: writeAmount(product.price, currency, style),
      price_formatted: formatAmount(product.price, currency, style),
      from_price: null,
      from_price_formatted: null,
      to_price: null,
      to_price_formatted: null,
      pay_what_you_want: false,
      buy_now_url: `https://stand-in.lemonsqueezy.example/checkout/buy/${product.id}`,
      ...formatTimes(product),
      test_mode: shop.testMode,
    };
  },
};

/** Creates a product with variants. Lemon Squeezy has no API for it, so only the control API calls this. */
export function createProduct(shop, { store_id, name, variants }) {
  const product = shop.insert('products', {
    store_id: String(store_id ?? shop.all('stores')[0].id),
    name,
    slug: name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'),
    price: variants[0].price,
  });
  const created = variants.map((variant) => createVariant(shop, product, variant));
  return { product, variants: created };
}
