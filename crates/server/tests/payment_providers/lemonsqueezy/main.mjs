// A stand-in of the Lemon Squeezy API for tests and guides.
//
//     node main.mjs [--port 0] [--now UNIX_SECONDS]

import { Clock } from '../stand_in/clock.mjs';
import { Faults } from '../stand_in/faults.mjs';
import { run } from '../stand_in/listen.mjs';
import { Outbox } from '../stand_in/outbox.mjs';
import { Requests } from '../stand_in/requests.mjs';
import { apiHandler } from './api.mjs';
import { lemonSqueezyControl } from './control.mjs';
import { prepareDelivery } from './deliveries.mjs';
import { createStore } from './resources/stores.mjs';
import { Shop } from './shop.mjs';
import { createView } from './views.mjs';

run((values, address) => {
  const clock = new Clock();
  if (values.now) clock.freeze(Number(values.now));
  // Requests per minute and key, and the way amounts are written (see money.mjs).
  const settings = { rate_limit: 300, amount_style: 'minor' };
  const next = new Map();
  const ids = (type) => {
    next.set(type, (next.get(type) ?? 0) + 1);
    return next.get(type);
  };
  const view = createView(address);
  const shops = {
    test: new Shop({ testMode: true, clock, settings, ids, view }),
    live: new Shop({ testMode: false, clock, settings, ids, view }),
  };
  const deliveries = new Map();
  // Lemon Squeezy treats every other status as a failure.
  const outbox = new Outbox(
    ({ event, endpoint }) => prepareDelivery(deliveries.get(`${event} ${endpoint}`)),
    (status) => status === 200,
  );
  for (const shop of Object.values(shops)) {
    createStore(shop);
    shop.onEvent = (webhook, event) => {
      deliveries.set(`${event.id} ${webhook.id}`, { shop, webhook, event });
      outbox.add({ endpoint: webhook.id, event: event.id, type: event.name, object: `${event.type}/${event.record}` });
    };
  }
  const [faults, requests] = [new Faults(), new Requests()];
  const keys = { revoked: new Set(), live: new Set() };
  const control = lemonSqueezyControl({ clock, shops, outbox, faults, requests, keys, settings, view });
  return apiHandler({ shops, keys, faults, requests, settings, address, view, control });
});
