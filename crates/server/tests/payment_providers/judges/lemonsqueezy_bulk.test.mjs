// 4,000 subscriptions and 20,000 invoices are loaded, listed and totaled.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startStandIn } from './processes.mjs';

const { address, control } = await startStandIn('lemonsqueezy');

async function* pages(path) {
  const headers = { authorization: 'Bearer judge', accept: 'application/vnd.api+json' };
  for (let next = `${address}/v1/${path}?page%5Bsize%5D=100`; next;) {
    const response = await fetch(next, { headers });
    const { data, links } = await response.json();
    yield* data;
    next = links.next;
  }
}

test('bulk_loads_are_listed_completely', async () => {
  await control('POST', '/settings', { rate_limit: 1_000_000 });
  const currencies = ['USD', 'JPY', 'KWD', 'ISK', 'UGX', 'MGA'];
  await control('POST', '/bulk', { subscriptions: 4000, invoices: 20_000, currencies });
  const totals = await control('GET', '/totals');
  const statuses = {};
  for await (const { attributes } of pages('subscriptions')) statuses[attributes.status] = (statuses[attributes.status] ?? 0) + 1;
  assert.deepEqual(statuses, totals.subscriptions);
  const start = Date.now();
  const sums = {};
  let count = 0;
  for await (const { attributes } of pages('subscription-invoices')) {
    count += 1;
    const key = `${attributes.status} ${attributes.currency}`;
    sums[key] = (sums[key] ?? 0) + attributes.total;
  }
  assert.equal(count, 20_000);
  const expected = Object.entries(totals.invoices).flatMap(([status, byCurrency]) =>
    Object.entries(byCurrency).map(([currency, { total }]) => [`${status} ${currency}`, total]),
  );
  assert.deepEqual(sums, Object.fromEntries(expected));
  console.log(`# listed ${count} invoices in ${Date.now() - start} ms`);
});
