import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import test from 'node:test';
import { verifyWebhook, WebhookVerificationError } from '../../dist/index.js';

const OLD = `whsec_${randomBytes(32).toString('base64')}`;
const NEW = `whsec_${randomBytes(32).toString('base64')}`;
const OTHER = `whsec_${randomBytes(32).toString('base64')}`;
const BODY = '{"type":"plan.created","timestamp":"2026-11-15T09:30:00.000000Z","data":{"id":"evt_1","name":"Größe"}}';

const sign = (secret, id, timestamp, body) =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64')}`;

function signedRequest({ secrets = [OLD], age = 0, body = BODY } = {}) {
  const timestamp = String(Math.floor(Date.now() / 1000) - age);
  const signature = secrets.map((secret) => sign(secret, 'evt_1', timestamp, body)).join(' ');
  return { 'webhook-id': 'evt_1', 'webhook-timestamp': timestamp, 'webhook-signature': signature };
}

const rejected = (request) => assert.rejects(verifyWebhook(request), WebhookVerificationError);

test('a signed request returns its event', async () => {
  const headers = signedRequest();
  for (const body of [BODY, Buffer.from(BODY), new TextEncoder().encode(BODY).buffer]) {
    const event = await verifyWebhook({ body, headers, secrets: OLD });
    assert.equal(event.id, 'evt_1');
    assert.equal(event.type, 'plan.created');
  }
  await verifyWebhook({ body: BODY, headers: new Headers(headers), secrets: [OLD] });
});

test('during a rotation, each side may have either secret or both', async () => {
  for (const secrets of [[OLD], [NEW], [OLD, NEW], [OTHER, NEW]]) {
    await verifyWebhook({ body: BODY, headers: signedRequest({ secrets: [OLD, NEW] }), secrets });
  }
  await verifyWebhook({ body: BODY, headers: signedRequest({ secrets: [NEW] }), secrets: [OLD, NEW] });
});

test('forged, changed, old and future requests are rejected', async () => {
  await rejected({ body: BODY, headers: signedRequest(), secrets: [NEW, OTHER] });
  await rejected({ body: BODY, headers: signedRequest(), secrets: [] });
  await rejected({ body: BODY.replace('evt_1', 'evt_2'), headers: signedRequest(), secrets: OLD });
  await rejected({ body: BODY, headers: { ...signedRequest(), 'webhook-id': 'evt_2' }, secrets: OLD });
  await rejected({ body: BODY, headers: signedRequest({ age: 310 }), secrets: OLD });
  await rejected({ body: BODY, headers: signedRequest({ age: -310 }), secrets: OLD });
  await rejected({ body: BODY, headers: signedRequest({ age: 30 }), secrets: OLD, tolerance: 10 });
  await verifyWebhook({ body: BODY, headers: signedRequest({ age: 290 }), secrets: OLD });
});

test('headers that are missing, repeated or malformed are rejected', async () => {
  const headers = signedRequest();
  for (const name of Object.keys(headers)) {
    for (const value of [undefined, '', [headers[name], headers[name]], 'v1,%', 'v1,', 'v1a,AAAA', '1e3', 'NaN']) {
      if (name !== 'webhook-id' || typeof value !== 'string' || !value) {
        await rejected({ body: BODY, headers: { ...headers, [name]: value }, secrets: OLD });
      }
    }
  }
});

test('a malformed secret is an error of the caller', async () => {
  await assert.rejects(verifyWebhook({ body: BODY, headers: signedRequest(), secrets: 'whsec_' }), TypeError);
});
