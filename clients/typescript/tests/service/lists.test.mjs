import assert from 'node:assert/strict';
import test from 'node:test';
import { PerennialError } from '../../dist/index.js';
import { forEachIndex, isQuick, server } from '../harness/sandbox.mjs';

const RECORDS = isQuick ? 1000 : 10_000;

test(`a list of ${RECORDS} records is iterated once, in order`, async () => {
  const perennial = server();
  const created = await forEachIndex(RECORDS, 24, async (index) => {
    const { id } = await perennial.post('/users', { body: { email: `list-${index}@example.com` } });
    return id;
  });
  const query = { email_prefix: 'list-' };
  const listed = [];
  for await (const { id } of perennial.list('/users', { query })) listed.push(id);
  assert.equal(listed.length, RECORDS);
  assert.deepEqual(listed.toSorted(), created.toSorted());

  let pages = 0;
  let cursor;
  for await (const page of perennial.pages('/users', { query: { ...query, limit: 100 } })) {
    pages += 1;
    if (pages === 3) cursor = page.next_cursor;
  }
  assert.equal(pages, RECORDS / 100);
  const rest = [];
  for await (const { id } of perennial.list('/users', { query: { ...query, cursor } })) rest.push(id);
  assert.deepEqual(rest, listed.slice(300));
});

test('a loop that ends early sends no further request', async () => {
  let requests = 0;
  const counting = (...args) => {
    requests += 1;
    return fetch(...args);
  };
  for await (const { id } of server({ fetch: counting }).list('/users', { query: { limit: 10 } })) {
    assert.match(id, /^usr_/);
    break;
  }
  assert.equal(requests, 1);
});

test('the event log is a list too', async () => {
  const ids = new Set();
  for await (const { id, type } of server().list('/events', { query: { types: 'user.created', limit: 7 } })) {
    assert.equal(type, 'user.created');
    assert.ok(!ids.has(id));
    if (ids.add(id).size === 100) break;
  }
  assert.equal(ids.size, 100);
});

test('a problem has its code, request id and fields', async () => {
  const body = { name: 'Pro', slug: 'problem', price: 'free', billing_cycle: 'montly' };
  const error = await server()
    .post('/subscription-plans', { body })
    .catch((thrown) => thrown);
  assert.ok(error instanceof PerennialError);
  assert.equal(error.status, 422);
  assert.equal(error.code, 'validation_failed');
  assert.match(error.type, /\/docs\/errors\/validation_failed$/);
  assert.match(error.requestId, /^req_/);
  assert.equal(error.title, 'Validation failed');
  assert.equal(error.field('/price').code, 'invalid_format');
  assert.match(error.field('/billing_cycle').message, /did you mean "monthly"/);
  const conflict = await server()
    .get('/subscriptions', { query: { limt: 1 } })
    .catch((thrown) => thrown);
  assert.equal(conflict.field('?limt').code, 'invalid_parameter');
});
