import { formatTimes } from '../times.mjs';
import { formatAmount } from '../money.mjs';
import { unprocessable } from '../errors.mjs';

export const customers = {
  relationships: ['store', 'orders', 'subscriptions', 'license-keys'],
  filters: { store_id: 'store_id', email: 'email' },
  attributes: (shop, customer) => ({
    store_id: Number(customer.store_id),
    name: customer.name,
    email: customer.email,
    status: customer.status,
    city: null,
    region: null,
    country: 'US',
    total_revenue_currency: 0,
    mrr: 0,
    status_formatted: customer.status === 'archived' ? 'Archived' : 'Subscribed',
    country_formatted: 'United States',
    total_revenue_currency_formatted: formatAmount(0, 'USD', 'minor'),
    mrr_formatted: formatAmount(0, 'USD', 'minor'),
    urls: {
      // Signed links expire after a day. A link is made for each response.
      customer_portal: `https://stand-in.lemonsqueezy.example/billing?expires=${shop.now() + 86_400}&user=${customer.id}&signature=0`,
    },
    ...formatTimes(customer),
    test_mode: shop.testMode,
  }),
};

export function findOrCreateCustomer(shop, store_id, { email, name }) {
  const known = shop.all('customers', 'store_id', store_id).find((customer) => customer.email === email);
  return known ?? shop.insert('customers', { store_id, email, name: name ?? email.split('@')[0], status: 'subscribed' });
}

function create({ shop, attributes, related }) {
  const { email, name } = attributes;
  if (!email) throw unprocessable('/data/attributes/email', 'The email field is required.');
  if (!name) throw unprocessable('/data/attributes/name', 'The name field is required.');
  const store = related('stores', 'store');
  if (shop.all('customers', 'store_id', store.id).some((customer) => customer.email === email)) {
    throw unprocessable('/data/attributes/email', 'The email has already been taken.');
  }
  return findOrCreateCustomer(shop, store.id, { email, name });
}

function update({ shop, path, attributes }) {
  const customer = shop.get('customers', path.id);
  const { email = customer.email, name = customer.name, status = customer.status } = attributes;
  return shop.change(customer, { email, name, status });
}

export const customerRoutes = [
  ['POST', '/v1/customers', create],
  ['PATCH', '/v1/customers/:id', update],
];
