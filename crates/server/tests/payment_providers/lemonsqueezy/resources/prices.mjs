import { formatTimes } from '../times.mjs';
import { writeAmount } from '../money.mjs';

export const prices = {
  relationships: ['variant'],
  filters: { variant_id: 'variant_id' },
  attributes: (shop, price) => {
    const variant = shop.find('variants', price.variant_id);
    const { currency } = shop.find('stores', shop.find('products', variant.product_id).store_id);
    return {
      variant_id: Number(price.variant_id),
      category: variant.interval === null ? 'one_time' : 'subscription',
      scheme: 'standard',
      usage_aggregation: null,
      unit_price: writeAmount(price.unit_price, currency, shop.settings.amount_style),
      unit_price_decimal: null,
      setup_fee_enabled: false,
      setup_fee: null,
      package_size: 1,
      tiers: null,
      renewal_interval_unit: variant.interval,
      renewal_interval_quantity: variant.interval_count,
      trial_interval_unit: variant.trial_interval,
      trial_interval_quantity: variant.trial_interval_count,
      min_price: null,
      suggested_price: null,
      tax_code: 'saas',
      ...formatTimes(price),
    };
  },
};
