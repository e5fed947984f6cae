// Starts stand-ins, and receivers of their webhooks, for the judges.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { after } from 'node:test';
import Stripe from 'stripe';

/** Starts `stripe` or `lemonsqueezy`. It ends with the test file. */
export async function startStandIn(name, ...args) {
  const main = fileURLToPath(new URL(`../${name}/main.mjs`, import.meta.url));
  const child = spawn(process.execPath, [main, '--port', '0', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [address] = await once(createInterface(child.stdout), 'line');
  const control = async (method, path, body) => {
    const response = await fetch(`${address}/_control${path}`, { method, body: body && JSON.stringify(body) });
    const value = await response.json();
    if (!response.ok) throw new Error(value.error);
    return value;
  };
  after(() => child.stdin.end());
  return { address, child, control };
}

/** Returns the official SDK, connected to the stand-in. */
export function stripeClient(address, { key = 'sk_test_judge', ...options } = {}) {
  const { hostname, port } = new URL(address);
  return new Stripe(key, { host: hostname, port, protocol: 'http', telemetry: false, maxNetworkRetries: 0, ...options });
}

/** Creates a product with a monthly price, and a customer with a card. */
export async function createCatalog(stripe, { currency = 'usd', unit_amount = 1999, card = 'pm_card_visa' } = {}) {
  const product = await stripe.products.create({ name: 'Pro' });
  const price = await stripe.prices.create({ product: product.id, currency, unit_amount, recurring: { interval: 'month' } });
  const customer = await stripe.customers.create({
    email: 'customer@example.com',
    payment_method: card,
    invoice_settings: { default_payment_method: card },
  });
  return { product, price, customer };
}

/** Receives webhooks. `status` is that of the next responses. */
export async function startReceiver() {
  const received = [];
  const receiver = { received, status: 200 };
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts).toString();
    received.push({ headers: request.headers, body, json: JSON.parse(body) });
    response.writeHead(receiver.status).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  receiver.url = `http://127.0.0.1:${server.address().port}/hook`;
  after(() => server.close().closeAllConnections());
  return receiver;
}
