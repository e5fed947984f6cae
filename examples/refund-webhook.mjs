// Handles a payment provider's refund notifications: finds the payment by the provider's id and records the refund.
//
//   URL=http://127.0.0.1:8080 CLIENT_ID=prn_sk_… WEBHOOK_SECRET=… node refund-webhook.mjs
//
// Needs Node.js 20 and no packages. CLIENT_ID is a secret client with the scopes payments:read and payments:write.
//
// The provider posts to /refunds, signed with HMAC-SHA-256 of the body in the header `signature`:
//   {"payment_id": "pi_42", "refunded_total": "5.00", "currency": "USD"}
// `refunded_total` is what has been refunded so far, as most providers report it. With the amount of each single refund
// instead, a repeated notification could not be told from a second refund.
//
// Providers repeat notifications, and deliver them late and out of order. The handler only ever raises the refunded
// amount, so every notification can arrive any number of times. A response other than 2xx makes the provider retry.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const { URL: perennial = 'http://127.0.0.1:8080', CLIENT_ID, WEBHOOK_SECRET, HOST = '127.0.0.1', PORT = '3001' } = process.env;
if (!CLIENT_ID || !WEBHOOK_SECRET) throw new Error('set CLIENT_ID and WEBHOOK_SECRET');

const MAX_BODY = 64 * 1024;
const MAX_ATTEMPTS = 5;

/** An error with the HTTP status to answer the provider with. */
const httpError = (status, message) => Object.assign(new Error(message), { status });

/** Sends a request to Perennial. Returns the status, the ETag and the JSON body. */
async function request(method, path, { body, etag } = {}) {
  const headers = { 'client-id': CLIENT_ID };
  if (body) headers['content-type'] = 'application/json';
  if (etag) headers['if-match'] = etag;
  try {
    const signal = AbortSignal.timeout(15_000);
    const response = await fetch(new URL(path, perennial), { method, headers, signal, body: body && JSON.stringify(body) });
    return { status: response.status, etag: response.headers.get('etag'), json: await response.json() };
  } catch (error) {
    // The PUT may have taken effect. The provider's retry reads the payment again.
    throw httpError(503, `${method} ${path}: ${error.cause?.message ?? error.message}`);
  }
}

/** Like `request`, for requests that must succeed. */
async function read(path) {
  const response = await request('GET', path);
  if (response.status !== 200) throw httpError(503, `GET ${path}: ${response.json.detail}`);
  return response;
}

/** Records that `refunded_total` has been refunded so far, and returns what was done. */
async function recordRefund({ payment_id, refunded_total, currency }) {
  const query = new URLSearchParams({ external_payment_id: payment_id });
  const [found] = (await read(`/payments?${query}`)).json.data;
  // The payment's own notification may still be on its way: let the provider retry.
  if (!found) throw httpError(404, `there is no payment ${payment_id}`);
  if (found.currency !== currency) throw httpError(422, `${payment_id} is in ${found.currency}, not ${currency}`);

  const path = `/subscription-payments/${found.id}`;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { json: payment, etag } = await read(path);
    // Comparing decimals as floats is exact enough; never add or subtract them.
    const total = Number(refunded_total);
    if (total > payment.amount) throw httpError(422, `${payment_id}: refunded ${total} of ${payment.amount}`);
    if (total <= (payment.refunded_amount ?? 0)) return `${payment_id}: already recorded`;
    const body = total === payment.amount
      ? { status: 'refunded' }
      : { status: 'partially_refunded', refunded_amount: refunded_total };
    // If-Match: a notification that is handled at the same moment cannot be overwritten with a smaller amount.
    const updated = await request('PUT', path, { body, etag });
    if (updated.status === 200) return `${payment_id}: ${updated.json.status}, ${refunded_total} ${currency}`;
    if (updated.status !== 412) throw httpError(updated.status === 409 ? 409 : 503, `PUT ${path}: ${updated.json.detail}`);
  }
  throw httpError(503, `${payment_id} changes too often`);
}

/** Returns the notification, if its signature and its fields are valid. */
async function readNotification(req) {
  const chunks = [];
  let size = 0;
  for await (const chunk of req) {
    if ((size += chunk.length) > MAX_BODY) throw httpError(413, 'the body is too large');
    chunks.push(chunk);
  }
  // Signed are the bytes as sent, so parse only after the check.
  const body = Buffer.concat(chunks);
  const expected = createHmac('sha256', WEBHOOK_SECRET).update(body).digest();
  const signature = Buffer.from(String(req.headers.signature ?? ''), 'hex');
  if (signature.length !== expected.length || !timingSafeEqual(signature, expected)) throw httpError(401, 'wrong signature');
  const notification = JSON.parse(body);
  const { payment_id, refunded_total, currency } = notification;
  const valid = [payment_id, currency].every((text) => typeof text === 'string') && /^\d+(\.\d+)?$/.test(refunded_total);
  if (!valid) throw httpError(422, 'payment_id, refunded_total or currency is missing or invalid');
  return notification;
}

const server = createServer(async (req, res) => {
  try {
    if (req.method !== 'POST' || req.url !== '/refunds') throw httpError(404, `${req.method} ${req.url}`);
    console.log(await recordRefund(await readNotification(req)));
    res.writeHead(204).end();
  } catch (error) {
    const status = error.status ?? (error instanceof SyntaxError ? 400 : 500);
    console.error(`${status} ${error.message}`);
    res.writeHead(status).end();
  }
});
server.listen(Number(PORT), HOST, () => console.log(`refund webhook: http://${HOST}:${PORT}/refunds`));
