import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test from 'node:test';
import { verifyWebhook, WebhookVerificationError } from '../../dist/index.js';
import { startProxy } from '../harness/faulty_proxy.mjs';
import { freePort, server, until } from '../harness/sandbox.mjs';

const EVENTS = 200;

test('a stream continues after its connections are cut, without a gap and without a duplicate', async () => {
  const proxy = await startProxy();
  const controller = new AbortController();
  const received = [];
  const reading = (async () => {
    const events = server({ url: proxy.url }).events({
      after: 'now',
      types: 'user.created',
      signal: controller.signal,
    });
    for await (const { id, subject_id, position, cursor } of events)
      received.push({ id, subject_id, position, cursor });
  })();
  // The position of `now` must be known before the first event.
  await until(() => proxy.requests.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 500));

  const created = [];
  for (let index = 0; index < EVENTS; index += 1) {
    const user = await server().post('/users', { body: { email: `event-${index}@example.com` } });
    created.push(user.id);
    if (index % 50 === 25) proxy.cutConnections();
  }
  await until(() => received.length >= EVENTS);
  controller.abort();
  await reading;
  await proxy.close();
  assert.ok(proxy.requests.length > 1, 'the connection was not cut');
  assert.deepEqual(
    received.map(({ subject_id }) => subject_id),
    created,
  );

  // A reader that starts again with a saved cursor.
  const { cursor, position } = received[99];
  for await (const event of server().events({ after: cursor, types: 'user.created' })) {
    assert.equal(event.subject_id, created[100]);
    assert.ok(event.position > position);
    break;
  }
});

const readFirst = (options) => server(options.client).events(options.events).next();

test('a stream that the service refuses is an error', async () => {
  await assert.rejects(readFirst({ client: { clientId: 'prn_sk_wrong' } }), { status: 401, code: 'invalid_client' });
  await assert.rejects(readFirst({ events: { after: 'wrong' } }), { status: 400, code: 'invalid_cursor' });
});

test('webhook requests of the service are verified, also while the secret is replaced', async () => {
  const port = await freePort();
  const received = [];
  const listener = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => listener.listen(port, '127.0.0.1', resolve));
  const client = server();
  const body = { url: `http://127.0.0.1:${port}/hook`, event_types: ['user.created'] };
  const endpoint = await client.post('/webhook-endpoints', { body });
  const path = { id: endpoint.id };

  const user = await client.post('/users', { body: { email: 'webhook@example.com' } });
  const find = (id) => received.find((request) => request.body.includes(id));
  await until(() => find(user.id));
  const event = await verifyWebhook({ ...find(user.id), secrets: endpoint.secret });
  assert.equal(event.type, 'user.created');
  assert.equal(event.data.subject_id, user.id);
  assert.equal(event.id, event.data.id);
  const forged = Buffer.from(find(user.id).body.toString().replace(user.id, endpoint.id));
  const call = verifyWebhook({ ...find(user.id), body: forged, secrets: endpoint.secret });
  await assert.rejects(call, WebhookVerificationError);

  const { secret } = await client.post('/webhook-endpoints/{id}/rotate-secret', { path });
  const hasBoth = async () => {
    await client.post('/webhook-endpoints/{id}/test', { path });
    return received.at(-1).headers['webhook-signature'].split(' ').length === 2;
  };
  await until(hasBoth);
  for (const secrets of [endpoint.secret, secret, [endpoint.secret, secret]]) {
    assert.equal((await verifyWebhook({ ...received.at(-1), secrets })).type, 'webhook_endpoint.test');
  }
  await client.delete('/webhook-endpoints/{id}', { path });
  await new Promise((resolve) => listener.close(resolve));
});
