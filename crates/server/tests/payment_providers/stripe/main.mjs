// A stand-in of the Stripe API for tests and guides.
//
//     node main.mjs [--port 0] [--now UNIX_SECONDS] [--api-version VERSION]

import { Clock } from '../stand_in/clock.mjs';
import { Faults } from '../stand_in/faults.mjs';
import { run } from '../stand_in/listen.mjs';
import { Outbox } from '../stand_in/outbox.mjs';
import { Requests } from '../stand_in/requests.mjs';
import { apiHandler } from './api.mjs';
import { stripeControl } from './control.mjs';
import { prepareDelivery } from './deliveries.mjs';
import { newId } from './ids.mjs';
import { ApiKeys } from './keys.mjs';
import { Ledger } from './ledger.mjs';
import { LATEST_VERSION } from './versions.mjs';

run((values, address) => {
  const clock = new Clock();
  if (values.now) clock.freeze(Number(values.now));
  const settings = {
    account_id: newId('acct', 16),
    api_version: values['api-version'] ?? LATEST_VERSION,
    // What happens to a subscription after the last failed attempt: cancel, unpaid or past_due.
    after_retries: 'cancel',
    // Seconds added to the timestamp of signatures.
    signing_offset: 0,
  };
  const ledgers = {
    test: new Ledger({ livemode: false, clock, settings }),
    live: new Ledger({ livemode: true, clock, settings }),
  };
  ledgers.test.other = ledgers.live;
  ledgers.live.other = ledgers.test;
  const deliveries = new Map();
  const delivery = ({ event, endpoint }) => deliveries.get(`${event} ${endpoint}`);
  const outbox = new Outbox(
    (notification) => prepareDelivery(delivery(notification)),
    (status) => status >= 200 && status < 300,
  );
  outbox.onDelivered = (notification) => {
    delivery(notification).record.pending -= 1;
  };
  for (const ledger of Object.values(ledgers)) {
    ledger.onEvent = (target, record) => {
      deliveries.set(`${record.id} ${target.id}`, { ledger, target, record });
      record.pending += 1;
      outbox.add({ endpoint: target.id, event: record.id, type: record.type, object: record.snapshot.id });
    };
  }
  const [faults, requests, keys] = [new Faults(), new Requests(), new ApiKeys()];
  const control = stripeControl({ clock, ledgers, outbox, faults, requests, keys, settings });
  return apiHandler({ ledgers, keys, faults, requests, settings, address, control });
});
