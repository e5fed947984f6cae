// Reads webhook requests from the standard input and prints their signature headers: those of Stripe by the official SDK, those
// of Lemon Squeezy by Node's HMAC, which its documentation uses.

import { createHmac } from 'node:crypto';
import { text } from 'node:stream/consumers';
import Stripe from 'stripe';

/** Returns the header with one signature per secret, as during a rotation. */
function signStripe({ body, secrets, timestamp }) {
  const headers = secrets.map((secret) => Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp }));
  const [time] = headers[0].split(',');
  return [time, ...headers.map((header) => header.split(',')[1])].join(',');
}

function signLemonSqueezy({ body, secrets: [secret] }) {
  return createHmac('sha256', secret).update(body).digest('hex');
}

const signers = { stripe: signStripe, lemonsqueezy: signLemonSqueezy };
const requests = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(requests.map((request) => signers[request.provider](request))));
