import { formatTimes } from '../times.mjs';

export const stores = {
  relationships: ['products', 'orders', 'subscriptions', 'discounts', 'license-keys', 'webhooks'],
  filters: {},
  attributes: (shop, store) => ({
    name: store.name,
    slug: store.slug,
    domain: `${store.slug}.lemonsqueezy.example`,
    url: `https://${store.slug}.lemonsqueezy.example`,
    avatar_url: '',
    plan: 'fresh',
    country: 'US',
    country_nicename: 'United States',
    currency: store.currency,
    total_sales: 0,
    total_revenue: 0,
    thirty_day_sales: 0,
    thirty_day_revenue: 0,
    ...formatTimes(store),
  }),
};

export function createStore(shop, { name = 'Stand-in', currency = 'USD' } = {}) {
  return shop.insert('stores', { name, currency, slug: name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-') });
}
