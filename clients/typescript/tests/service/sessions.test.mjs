import assert from 'node:assert/strict';
import test from 'node:test';
import { memoryTokenStore } from '../../dist/index.js';
import { startProxy } from '../harness/faulty_proxy.mjs';
import { credentials, perennial, server, until } from '../harness/sandbox.mjs';

async function signIn(email, options) {
  const client = server({ tokenStore: memoryTokenStore(), ...options });
  const user = await client.session.signIn(credentials(email), { signUp: true });
  return { client, user };
}

test('concurrent calls with an expired access token share one refresh', async () => {
  const proxy = await startProxy();
  const tokenStore = memoryTokenStore();
  const { client } = await signIn('concurrent@example.com', { url: proxy.url, tokenStore });
  tokenStore.write({ ...tokenStore.read(), expiresAt: 0 });
  const calls = Array.from({ length: 30 }, () => client.get('/authentication/tokens'));
  for (const { data } of await Promise.all(calls)) assert.equal(data.length, 1);
  const refreshes = () => proxy.requests.filter(({ path }) => path.endsWith('/refresh-token')).length;
  assert.equal(refreshes(), 1);

  // A token that the service rejects although it has not expired here.
  tokenStore.write({ ...tokenStore.read(), accessToken: 'rejected' });
  await Promise.all(Array.from({ length: 30 }, () => client.get('/authentication/tokens')));
  assert.equal(refreshes(), 2);
  await proxy.close();
});

test('a session that is revoked elsewhere signs the user out', async () => {
  const { client, user } = await signIn('revoked@example.com');
  const changes = [];
  client.session.onChange((userId) => changes.push(userId));
  assert.equal((await client.entitlements()).user_id, user.id);
  perennial('session', 'revoke', '--user', 'revoked@example.com');
  // The cached entitlements expire, and then the service rejects the request.
  const took = await until(() =>
    client.entitlements().then(
      () => false,
      ({ code }) => code === 'invalid_token',
    ),
  );
  assert.ok(took < 7000, `${took} ms`);
  assert.equal(await client.session.userId(), undefined);
  assert.deepEqual(changes, [undefined]);
});

test('signing out ends the session at the service', async () => {
  const { client, user } = await signIn('out@example.com');
  const accessToken = await client.session.accessToken();
  const other = server().as(accessToken);
  assert.equal((await other.entitlements()).user_id, user.id);
  await client.session.signOut();
  assert.equal(await client.session.userId(), undefined);
  await assert.rejects(other.get('/entitlements'), { code: 'invalid_token' });
  // Also if the session has ended already.
  await client.session.signOut();
});

test('a user without an account is an error unless it may be created', async () => {
  const client = server({ tokenStore: memoryTokenStore() });
  await assert.rejects(client.session.signIn(credentials('none@example.com')), { code: 'account_not_found' });
  assert.equal(await client.session.accessToken(), undefined);
});

test('a lost response of a sign-up is not an error', async () => {
  const proxy = await startProxy(({ path }) => (path.endsWith('/sign-up') ? 'cut' : undefined));
  const client = server({ url: proxy.url, tokenStore: memoryTokenStore(), retry: { initialDelay: 10, attempts: 2 } });
  await assert.rejects(client.session.signIn(credentials('up@example.com'), { signUp: true }));
  let isFirst = true;
  proxy.fault = ({ path }) => {
    if (!path.endsWith('/sign-up') || !isFirst) return undefined;
    isFirst = false;
    return 'cut';
  };
  const user = await client.session.signIn(credentials('up-2@example.com'), { signUp: true });
  assert.equal(user.email, 'up-2@example.com');
  await proxy.close();
});

test('a server without a token store has no session', () => {
  assert.throws(() => server().session, /tokenStore/);
});
