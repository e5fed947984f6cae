import { formatTimes, timestamp } from '../times.mjs';
import { amountFields } from '../money.mjs';
import { ApiError, unprocessable } from '../errors.mjs';
import { sell } from '../billing.mjs';
import { findOrCreateCustomer } from './customers.mjs';

const PRODUCT_OPTIONS = {
  name: '',
  description: '',
  media: [],
  redirect_url: '',
  receipt_button_text: '',
  receipt_link_url: '',
  receipt_thank_you_note: '',
  enabled_variants: [],
  confirmation_title: '',
  confirmation_message: '',
  confirmation_button_text: '',
};
const COLORS = [
  'background_color',
  'headings_color',
  'primary_text_color',
  'secondary_text_color',
  'links_color',
  'borders_color',
  'checkbox_color',
  'active_state_color',
  'button_color',
  'button_text_color',
  'terms_privacy_color',
];
const CHECKOUT_OPTIONS = {
  embed: false,
  media: true,
  logo: true,
  desc: true,
  discount: true,
  skip_trial: false,
  quantity: 1,
  subscription_preview: true,
  dark: false,
  ...Object.fromEntries(COLORS.map((name) => [name, '#7047EB'])),
};
const CHECKOUT_DATA = {
  email: '',
  name: '',
  billing_address: [],
  tax_number: '',
  discount_code: '',
  custom: [],
  variant_quantities: [],
};

export const checkouts = {
  relationships: ['store', 'variant'],
  filters: { store_id: 'store_id', variant_id: 'variant_id' },
  attributes: (shop, checkout) => {
    const { currency } = shop.find('stores', checkout.store_id);
    const amount = (name, value) => amountFields(name, value, currency, shop.settings);
    const total = checkout.custom_price ?? shop.find('variants', checkout.variant_id).price;
    return {
      store_id: Number(checkout.store_id),
      variant_id: Number(checkout.variant_id),
      custom_price: checkout.custom_price,
      product_options: { ...PRODUCT_OPTIONS, ...checkout.product_options },
      checkout_options: { ...CHECKOUT_OPTIONS, ...checkout.checkout_options },
      checkout_data: { ...CHECKOUT_DATA, ...checkout.checkout_data },
      // Only the response to the creation has a preview, and only on request.
      ...(checkout.has_preview
        ? {
            preview: {
              currency,
              currency_rate: 1,
              ...amount('subtotal', total),
              ...amount('discount_total', 0),
              ...amount('setup_fee', 0),
              ...amount('tax', 0),
              ...amount('total', total),
            },
          }
        : {}),
      expires_at: timestamp(checkout.expires_at),
      ...formatTimes(checkout),
      test_mode: shop.testMode,
      url: checkout.url,
    };
  },
};

function create({ shop, attributes, related, address }) {
  const store = related('stores', 'store');
  const variant = related('variants', 'variant');
  const custom = attributes.checkout_data?.custom;
  for (const [name, value] of Object.entries(custom ?? {})) {
    if (typeof value !== 'string')
      throw unprocessable(`/data/attributes/checkout_data/custom/${name}`, 'The custom value must be a string.');
  }
  const checkout = shop.insert('checkouts', {
    store_id: store.id,
    variant_id: variant.id,
    custom_price: attributes.custom_price ?? null,
    product_options: attributes.product_options ?? {},
    checkout_options: attributes.checkout_options ?? {},
    checkout_data: attributes.checkout_data ?? {},
    has_preview: attributes.preview === true,
    expires_at: attributes.expires_at ? Math.floor(Date.parse(attributes.expires_at) / 1000) : null,
  });
  checkout.url = `${address()}/checkout/custom/${checkout.id}?expires=${shop.now() + 86_400}&signature=0`;
  return checkout;
}

/** Pays a checkout. `currency` defaults to that of the store. A checkout can be paid more than once, as the real page allows. */
export function completeCheckout(shop, checkout, { email, name, currency, price } = {}) {
  if (checkout.expires_at !== null && checkout.expires_at <= shop.now()) throw new ApiError(410, 'The checkout has expired.');
  const data = checkout.checkout_data;
  const buyer = { email: data.email || email || 'customer@example.com', name: data.name || name };
  return sell(shop, {
    customer: findOrCreateCustomer(shop, checkout.store_id, buyer),
    variant: shop.get('variants', checkout.variant_id),
    quantity: data.variant_quantities?.[0]?.quantity ?? 1,
    custom: data.custom,
    currency: currency ?? shop.find('stores', checkout.store_id).currency,
    ...(checkout.custom_price === null && price === undefined ? {} : { price: price ?? checkout.custom_price }),
  });
}

export const checkoutRoutes = [['POST', '/v1/checkouts', create]];
