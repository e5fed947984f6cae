// Fills what a service with demo data lacks: a failing webhook endpoint with a receiver in this process, and a payment account with
// notifications.
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { settings, until, url } from '../harness.mjs';
import { change, read } from './session.mjs';

const DESCRIPTION = 'Fulfillment';
/** Time for the service to deliver an event. */
export const DELIVERY_TIMEOUT = 30_000;
const SECRET = 'a-secret-of-the-browser-test';

/** Starts a receiver of webhooks, which responds with its `status`. */
export async function startReceiver() {
  const receiver = { status: 500, received: [], url: `http://127.0.0.1:${settings.port}/` };
  const listener = createServer((request, response) => {
    request.resume();
    receiver.received.push({ id: request.headers['webhook-id'], status: receiver.status });
    response.writeHead(receiver.status, { 'content-type': 'text/html' });
    response.end('<b>bold</b>');
  });
  await new Promise((resolve) => {
    listener.listen(settings.port, '127.0.0.1', resolve);
  });
  return receiver;
}

/**
 * Makes an endpoint of the receiver fail with an event of its own, and returns the endpoint. A `text` becomes its description, and that
 * of the plan in the event.
 */
export async function failingEndpoint(page, receiver, text = DESCRIPTION) {
  receiver.status = 500;
  const { data } = await read(page, '/webhook-endpoints?limit=200');
  const found = data.find(({ description }) => description === text);
  const body = { url: receiver.url, description: text, event_types: ['plan.*'] };
  const endpoint = await change(page, found ? 'PUT' : 'POST', found ? `/webhook-endpoints/${found.id}` : '/webhook-endpoints', body);
  const plan = { slug: `webhook-${Date.now().toString(36)}`, name: text, description: text, is_active: false };
  await change(page, 'POST', '/subscription-plans', { ...plan, price: '9.99', currency: 'USD', billing_cycle: 'monthly' });
  const isFailing = async () => (await read(page, `/webhook-endpoints/${endpoint.id}`)).failing_since !== null;
  await until(isFailing, 'the webhook endpoint fails', DELIVERY_TIMEOUT);
  return endpoint;
}

/** Creates a payment account with notifications in several states, and returns it. */
export async function notifiedAccount(page, text = DESCRIPTION) {
  const { data } = await read(page, '/payment-accounts?limit=200');
  const found = data.find(({ description }) => description === text);
  if (found) return found;
  const fields = { provider: 'lemonsqueezy', mode: 'test', description: text, external_account_id: '1042' };
  const account = await change(page, 'POST', '/payment-accounts', fields);
  await change(page, 'POST', `/payment-accounts/${account.id}/rotate-secret`, { secret: SECRET });
  for (const body of NOTIFICATIONS) {
    const signature = createHmac('sha256', SECRET).update(body).digest('hex');
    const headers = { 'content-type': 'application/json', 'x-signature': signature };
    const response = await fetch(`${url}/payment-notifications/${account.id}`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`notification: ${await response.text()}`);
  }
  return account;
}

/** Of another store, of a type without effect, with markup, and of a payment. */
const NOTIFICATIONS = [
  ['subscription_updated', 7],
  ['license_key_created', 1042],
  ['<b>bold</b>', 1042],
  ['subscription_created', 1042],
].map(([event_name, store_id], index) => {
  const id = `${index + 1}`;
  return JSON.stringify({
    meta: { event_name, test_mode: true, webhook_id: id },
    data: { type: 'subscriptions', id, attributes: { store_id, test_mode: true } },
  });
});
