import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { Perennial } from '@perennial/client';
import { UserChanges, webhookReceiver } from '../src/webhooks.js';

const secret = `whsec_${Buffer.from('a secret of this test').toString('base64')}`;
const userId = 'usr_0192f0c1a2b37c4d8e5f60718293a4b5';
const changes = new UserChanges();
const perennial = new Perennial({ url: 'http://127.0.0.1:9', clientId: 'prn_sk_test' });
const receive = webhookReceiver({ webhookSecrets: [secret] }, perennial, changes);
const server = createServer(async (request, response) => response.writeHead(await receive(request)).end());
server.listen(0, '127.0.0.1').unref();
await once(server, 'listening');

/** Sends an event, and returns the status and whether it reported a change. */
async function deliver(id, { key = secret, type = 'subscription.updated' } = {}) {
  const body = JSON.stringify({
    type,
    timestamp: '2026-11-15T09:30:00Z',
    data: { subject_id: 'sub_1', data: { user_id: userId } },
  });
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', Buffer.from(key.slice(6), 'base64'))
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64');
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
  const changed = changes.next(userId, 2000);
  const { status } = await fetch(`http://127.0.0.1:${server.address().port}/`, { method: 'POST', headers, body });
  // The receiver reports a change before it responds.
  return [status, await Promise.race([changed, new Promise((resolve) => setImmediate(resolve, false))])];
}

test('signed_event_reports_a_change_once', async () => {
  assert.deepEqual(await deliver('msg_1'), [204, true]);
  assert.deepEqual(await deliver('msg_1'), [204, false], 'the same event again');
  assert.deepEqual(await deliver('msg_2'), [204, true]);
});

test('event_with_another_secret_is_rejected', async () => {
  const key = `whsec_${Buffer.from('another secret').toString('base64')}`;
  assert.deepEqual(await deliver('msg_3', { key }), [401, false]);
  assert.deepEqual(await deliver('msg_3'), [204, true], 'the rejected id was not stored');
});
