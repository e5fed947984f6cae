import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { cliOf, curlOf, flagsOf, sendForText, shellWord } from './commands';

test('a word with special characters is quoted for the shell', () => {
  expect(shellWord('whe_0192')).toBe('whe_0192');
  expect(shellWord('subscription.*')).toBe("'subscription.*'");
  expect(shellWord("it's $(rm -rf ~)")).toBe(`'it'\\''s $(rm -rf ~)'`);
  expect(shellWord('')).toBe("''");
});

test('a request becomes a curl command without a key', () => {
  const request = { method: 'PUT', path: '/plans/a', body: { name: "o'clock" } } as const;
  expect(curlOf(request, 'http://localhost')).toBe(
    [
      'curl -X PUT http://localhost/plans/a',
      '-H "client-id: $CLIENT_ID"',
      `--json '{"name":"o'\\''clock"}'`,
    ].join(' \\\n  '),
  );
});

test('a curl command has the headers of its request', () => {
  const headers = { 'Idempotency-Key': 'k1' };
  expect(curlOf({ method: 'DELETE', path: '/users/usr_1', headers }, '')).toBe(
    ['curl -X DELETE /users/usr_1', '-H "client-id: $CLIENT_ID"', "-H 'Idempotency-Key: k1'"].join(
      ' \\\n  ',
    ),
  );
});

test('a command quotes its words', () => {
  expect(cliOf('webhook-endpoint', 'update', 'whe_1', '--event-types', '')).toBe(
    "perennial webhook-endpoint update whe_1 --event-types ''",
  );
});

test('fields become flags, and an empty value clears one', () => {
  const fields = { subscription_plan_slug: 'team', quantity: 5, ends_at: null, is_active: false };
  expect(cliOf('subscription', 'update', 'sub_1', ...flagsOf(fields))).toBe(
    "perennial subscription update sub_1 --plan team --quantity 5 --ends-at '' --is-active false",
  );
});

test('the text of a response keeps its decimals', async () => {
  const server = createServer((_, response) => response.end('{"price":19.90}'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const path = `http://127.0.0.1:${(server.address() as AddressInfo).port}/users/usr_1/export`;
  try {
    expect(await sendForText({ method: 'POST', path })).toBe('{"price":19.90}');
  } finally {
    server.close();
  }
});
