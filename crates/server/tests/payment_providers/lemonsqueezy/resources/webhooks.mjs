import { formatTimes, timestamp } from '../times.mjs';
import { unprocessable } from '../errors.mjs';

const EVENTS = [
  'order_created',
  'order_refunded',
  'subscription_created',
  'subscription_updated',
  'subscription_cancelled',
  'subscription_resumed',
  'subscription_expired',
  'subscription_paused',
  'subscription_unpaused',
  'subscription_payment_success',
  'subscription_payment_failed',
  'subscription_payment_recovered',
  'subscription_payment_refunded',
  'license_key_created',
  'license_key_updated',
];

export const webhooks = {
  relationships: ['store'],
  filters: { store_id: 'store_id' },
  attributes: (shop, webhook) => ({
    store_id: Number(webhook.store_id),
    url: webhook.url,
    events: webhook.events,
    last_sent_at: timestamp(webhook.last_sent_at),
    ...formatTimes(webhook),
    test_mode: shop.testMode,
  }),
};

function check({ url, events, secret }) {
  const pointer = (name) => `/data/attributes/${name}`;
  if (url !== undefined && !/^https?:\/\/\S+$/.test(url)) throw unprocessable(pointer('url'), 'The url format is invalid.');
  if (events !== undefined && (!Array.isArray(events) || events.length === 0 || events.some((name) => !EVENTS.includes(name)))) {
    throw unprocessable(pointer('events'), 'The selected events is invalid.');
  }
  if (secret !== undefined && (secret.length < 6 || secret.length > 40)) {
    throw unprocessable(pointer('secret'), 'The secret must be between 6 and 40 characters.');
  }
}

function create({ shop, attributes, related }) {
  for (const name of ['url', 'events', 'secret']) {
    if (attributes[name] === undefined) throw unprocessable(`/data/attributes/${name}`, `The ${name} field is required.`);
  }
  check(attributes);
  const { url, events, secret } = attributes;
  return shop.insert('webhooks', { store_id: related('stores', 'store').id, url, events, secret, last_sent_at: null });
}

function update({ shop, path, attributes }) {
  check(attributes);
  const webhook = shop.get('webhooks', path.id);
  const { url = webhook.url, events = webhook.events, secret = webhook.secret } = attributes;
  return shop.change(webhook, { url, events, secret });
}

function remove({ shop, path }) {
  shop.get('webhooks', path.id).deleted = true;
  return null;
}

export const webhookRoutes = [
  ['POST', '/v1/webhooks', create],
  ['PATCH', '/v1/webhooks/:id', update],
  ['DELETE', '/v1/webhooks/:id', remove],
];
