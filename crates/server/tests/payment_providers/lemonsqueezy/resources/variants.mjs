import { formatTimes } from '../times.mjs';
import { writeAmount } from '../money.mjs';

export const variants = {
  relationships: ['product', 'files', 'price-model'],
  filters: { product_id: 'product_id' },
  attributes: (shop, variant) => {
    const { currency } = shop.find('stores', shop.find('products', variant.product_id).store_id);
    const price = writeAmount(variant.price, currency, shop.settings.amount_style);
    // The only variant of a product is its default, which is sold and stays pending.
    const isDefault = shop.all('variants', 'product_id', variant.product_id).length === 1;
    return {
      product_id: Number(variant.product_id),
      name: variant.name,
      slug: variant.slug,
      description: '',
      has_license_keys: false,
      license_activation_limit: 0,
      is_license_limit_unlimited: true,
      license_length_value: 1,
      license_length_unit: 'years',
      is_license_length_unlimited: true,
      links: [],
      sort: 1,
      status: isDefault ? 'pending' : 'published',
      status_formatted: isDefault ? 'Pending' : 'Published',
      ...formatTimes(variant),
      test_mode: shop.testMode,
      // Deprecated, but still sent.
      price,
      is_subscription: variant.interval !== null,
      interval: variant.interval,
      interval_count: variant.interval_count,
      has_free_trial: variant.trial_interval !== null,
      trial_interval: variant.trial_interval ?? 'day',
      trial_interval_count: variant.trial_interval_count ?? 30,
      pay_what_you_want: false,
      min_price: 0,
      suggested_price: 0,
    };
  },
};

/** `price` is in ISO 4217 minor units. Without an `interval`, the variant is sold once. */
export function createVariant(
  shop,
  product,
  { name = 'Default', price, interval = null, interval_count = 1, trial_interval = null, trial_interval_count = 1 },
) {
  const variant = shop.insert('variants', {
    product_id: product.id,
    name,
    slug: `${product.slug}-${name.toLowerCase()}`,
    price,
    interval,
    interval_count: interval === null ? null : interval_count,
    trial_interval,
    trial_interval_count: trial_interval === null ? null : trial_interval_count,
  });
  const model = shop.insert('prices', { variant_id: variant.id, unit_price: price });
  variant.price_id = model.id;
  return variant;
}
