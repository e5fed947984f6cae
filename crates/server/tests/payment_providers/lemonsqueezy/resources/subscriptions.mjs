import { formatTimes, timestamp } from '../times.mjs';
import { unprocessable } from '../errors.mjs';
import { cancelSubscription, changeVariant, pauseSubscription, resumeSubscription, unpauseSubscription } from '../billing.mjs';

const STATUS = {
  on_trial: 'On trial',
  active: 'Active',
  paused: 'Paused',
  past_due: 'Past due',
  unpaid: 'Unpaid',
  cancelled: 'Cancelled',
  expired: 'Expired',
};

export const subscriptions = {
  relationships: [
    'store',
    'customer',
    'order',
    'order-item',
    'product',
    'variant',
    'subscription-items',
    'subscription-invoices',
  ],
  filters: {
    store_id: 'store_id',
    order_id: 'order_id',
    order_item_id: 'order_item_id',
    product_id: 'product_id',
    variant_id: 'variant_id',
    user_email: 'user_email',
    status: 'status',
  },
  attributes: (shop, subscription) => {
    const variant = shop.find('variants', subscription.variant_id);
    const link = (name) =>
      `https://stand-in.lemonsqueezy.example/${name}/${subscription.id}?expires=${shop.now() + 86_400}&signature=0`;
    return {
      store_id: Number(subscription.store_id),
      customer_id: Number(subscription.customer_id),
      order_id: Number(subscription.order_id),
      order_item_id: Number(subscription.order_item_id),
      product_id: Number(subscription.product_id),
      variant_id: Number(subscription.variant_id),
      product_name: shop.find('products', subscription.product_id).name,
      variant_name: variant.name,
      user_name: subscription.user_name,
      user_email: subscription.user_email,
      status: subscription.status,
      status_formatted: STATUS[subscription.status],
      card_brand: 'visa',
      card_last_four: '4242',
      pause: subscription.pause && { mode: subscription.pause.mode, resumes_at: timestamp(subscription.pause.resumes_at) },
      cancelled: subscription.cancelled,
      trial_ends_at: timestamp(subscription.trial_ends_at),
      billing_anchor: new Date(subscription.anchor * 1000).getUTCDate(),
      first_subscription_item: {
        id: Number(subscription.id),
        subscription_id: Number(subscription.id),
        price_id: Number(variant.price_id),
        quantity: subscription.quantity,
        is_usage_based: false,
        ...formatTimes(subscription),
      },
      urls: {
        update_payment_method: link('subscription-payment'),
        customer_portal: link('billing'),
        customer_portal_update_subscription: link('billing-update'),
      },
      renews_at: timestamp(subscription.renews_at),
      ends_at: timestamp(subscription.ends_at),
      ...formatTimes(subscription),
      test_mode: shop.testMode,
    };
  },
};

function update({ shop, path, attributes }) {
  const subscription = shop.get('subscriptions', path.id);
  if (subscription.status === 'expired') throw unprocessable('/data', 'An expired subscription cannot be changed.');
  const { pause, cancelled, variant_id: variantId } = attributes;
  if (variantId !== undefined && String(variantId) !== subscription.variant_id) {
    const variant = shop.get('variants', variantId);
    if (variant.interval === null) throw unprocessable('/data/attributes/variant_id', 'The variant must be a subscription.');
    changeVariant(shop, subscription, variant, { isInvoiced: attributes.invoice_immediately === true });
  }
  if (pause === null) unpauseSubscription(shop, subscription);
  else if (pause !== undefined) {
    if (!['void', 'free'].includes(pause.mode))
      throw unprocessable('/data/attributes/pause/mode', 'The mode must be void or free.');
    const resumes_at = pause.resumes_at ? Math.floor(Date.parse(pause.resumes_at) / 1000) : null;
    pauseSubscription(shop, subscription, { mode: pause.mode, resumes_at });
  }
  if (cancelled === true) cancelSubscription(shop, subscription);
  if (cancelled === false) resumeSubscription(shop, subscription);
  return subscription;
}

export const subscriptionRoutes = [
  ['PATCH', '/v1/subscriptions/:id', update],
  ['DELETE', '/v1/subscriptions/:id', ({ shop, path }) => cancelSubscription(shop, shop.get('subscriptions', path.id))],
];
