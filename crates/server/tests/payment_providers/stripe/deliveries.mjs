// Signs events and prepares them for delivery.

import { createHmac } from 'node:crypto';
import { eventView, thinEventView } from './resources/events.mjs';

/** Returns the Stripe-Signature header with one signature per secret. */
export function signatureHeader(body, timestamp, secrets) {
  const signatures = secrets.map((secret) => createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex'));
  return [`t=${timestamp}`, ...signatures.map((signature) => `v1=${signature}`)].join(',');
}

/**
 * Returns the request of a notification. The timestamp is the real time, not the time of the stand-in's clock, so that
 * receivers accept it; `signing_offset` of the settings moves it.
 */
export function prepareDelivery({ ledger, target, record }) {
  const now = Math.floor(Date.now() / 1000) + ledger.settings.signing_offset;
  const view = target.is_thin
    ? thinEventView(ledger, record)
    : eventView(ledger, record, target.api_version ?? ledger.settings.api_version);
  const body = JSON.stringify(view, null, 2);
  const secrets = target.secrets
    .filter(({ expires_at }) => expires_at === null || expires_at > ledger.now())
    .map(({ value }) => value);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
    'stripe-signature': signatureHeader(body, now, secrets),
  };
  return target.forward ? { send: () => target.forward(body, headers) } : { url: target.url, body, headers };
}
