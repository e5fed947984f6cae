// Signs events and prepares them for delivery.

import { createHmac } from 'node:crypto';

/** Returns the request of a notification. The id is that of the event, so retries repeat it. */
export function prepareDelivery({ shop, webhook, event }) {
  webhook.last_sent_at = shop.now();
  const meta = { test_mode: shop.testMode, event_name: event.name, webhook_id: event.id };
  if (event.custom && Object.keys(event.custom).length > 0) meta.custom_data = event.custom;
  const body = JSON.stringify({ meta, data: event.data });
  return {
    url: webhook.url,
    body,
    headers: {
      'content-type': 'application/json',
      'x-event-name': event.name,
      'x-signature': createHmac('sha256', webhook.secret).update(body).digest('hex'),
    },
  };
}
