// Fills what a service with demo data lacks: a failing webhook endpoint with a receiver in this process, and a
// payment account with notifications.
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { read } from './browser.mjs';

const DESCRIPTION = 'Fulfillment';
/** Time for the service to deliver an event. */
const DELIVERY_TIMEOUT = 30_000;
const SECRET = 'a-secret-of-the-browser-test';

/** Sends a request with the page's session, and returns the response's body. */
export const change = (page, method, path, body) =>
  page.evaluate(
    async ([verb, url, payload]) => {
      const response = await fetch(url, {
        method: verb,
        ...(payload && {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(payload),
        }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${verb} ${url}: ${text}`);
      return text && JSON.parse(text);
    },
    [method, path, body],
  );

/** Starts a receiver of webhooks, which responds with its `status`. */
export async function startReceiver() {
  const receiver = { status: 500, received: [] };
  const server = createServer((request, response) => {
    request.resume();
    receiver.received.push({ id: request.headers['webhook-id'], status: receiver.status });
    response.writeHead(receiver.status, { 'content-type': 'text/html' });
    response.end('<b>bold</b>');
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  receiver.url = `http://127.0.0.1:${server.address().port}/`;
  receiver.close = () => server.close();
  return receiver;
}

/**
 * Makes an endpoint of the receiver fail with an event of its own, and returns the endpoint. A `text`
 * becomes its description, and that of the plan in the event.
 */
export async function failingEndpoint(page, receiver, text = DESCRIPTION) {
  receiver.status = 500;
  const { data } = await read(page, '/webhook-endpoints?limit=200');
  const found = data.find(({ description }) => description === text);
  const settings = { url: receiver.url, description: text, event_types: ['plan.*'] };
  const endpoint = found
    ? await change(page, 'PUT', `/webhook-endpoints/${found.id}`, settings)
    : await change(page, 'POST', '/webhook-endpoints', settings);
  const slug = `webhook-${Date.now().toString(36)}`;
  await change(page, 'POST', '/subscription-plans', {
    slug,
    name: text,
    description: text,
    price: '9.99',
    currency: 'USD',
    billing_cycle: 'monthly',
    is_active: false,
  });
  await until(async () => {
    const { failing_since } = await read(page, `/webhook-endpoints/${endpoint.id}`);
    return failing_since !== null;
  });
  return endpoint;
}

/** Waits until a condition holds. */
export async function until(holds) {
  const deadline = Date.now() + DELIVERY_TIMEOUT;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`timed out: ${holds}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 250);
    });
  }
}

/** Creates a payment account with notifications in several states, and returns it. */
export async function notifiedAccount(page, origin, text = DESCRIPTION) {
  const { data } = await read(page, '/payment-accounts?limit=200');
  const found = data.find(({ description }) => description === text);
  if (found) return found;
  const account = await change(page, 'POST', '/payment-accounts', {
    provider: 'lemonsqueezy',
    mode: 'test',
    description: text,
    external_account_id: '1042',
  });
  const path = `/payment-accounts/${account.id}/rotate-secret`;
  await change(page, 'POST', path, { secret: SECRET });
  for (const body of notifications()) {
    const response = await fetch(`${origin}/payment-notifications/${account.id}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-signature': createHmac('sha256', SECRET).update(body).digest('hex'),
      },
      body,
    });
    if (!response.ok) throw new Error(`notification: ${await response.text()}`);
  }
  return account;
}

function notification(event_name, store_id, id) {
  return JSON.stringify({
    meta: { event_name, test_mode: true, webhook_id: id },
    data: { type: 'subscriptions', id, attributes: { store_id, test_mode: true } },
  });
}

/** Notifications of another store, of a type without effect, with markup, and of a payment. */
function notifications() {
  return [
    notification('subscription_updated', 7, '1'),
    notification('license_key_created', 1042, '2'),
    notification('<b>bold</b>', 1042, '3'),
    notification('subscription_created', 1042, '4'),
  ];
}
