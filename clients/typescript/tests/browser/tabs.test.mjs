// Tabs of one browser that share a session, on another origin than the service.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test, { after, before } from 'node:test';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { credentials, freePort, perennial, until, url } from '../harness/sandbox.mjs';

const TABS = 20;
const ROUNDS = 3;
/** Without a refresh, the test would wait forever. */
const LIMIT = { timeout: 30_000 };

let app, browser, context, clientId;
let tabs = [];
/** The statuses of the responses to refreshes. */
let refreshes = [];

before(async () => {
  const entryPoints = [new URL('../../dist/index.js', import.meta.url).pathname];
  const { outputFiles } = await build({ entryPoints, bundle: true, format: 'esm', write: false });
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const options = ['--name', 'tabs', '--kind', 'publishable', '--allowed-origin', origin];
  clientId = JSON.parse(perennial('client', 'create', '--json', ...options)).client_id;
  const script = `
    import { Perennial } from '/sdk.js';
    window.perennial = new Perennial({ url: ${JSON.stringify(url)}, clientId: ${JSON.stringify(clientId)} });
    window.Perennial = Perennial;
    window.changes = [];
    window.perennial.session.onChange((userId) => window.changes.push(userId ?? null));
  `;
  app = createServer((request, response) => {
    const isSdk = request.url === '/sdk.js';
    response.setHeader('content-type', isSdk ? 'text/javascript' : 'text/html');
    response.end(
      isSdk ? outputFiles[0].contents : `<!doctype html><title>Tab</title><script type="module">${script}</script>`,
    );
  });
  await new Promise((resolve) => app.listen(port, '127.0.0.1', resolve));

  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  context = await browser.newContext();
  context.on('response', (response) => {
    const isRefresh = response.url().endsWith('/refresh-token') && response.request().method() === 'POST';
    if (isRefresh) refreshes.push(response.status());
  });
  for (let index = 0; index < TABS; index += 1) {
    const tab = await context.newPage();
    await tab.goto(origin);
    await tab.waitForFunction(() => window.perennial);
    tabs.push(tab);
  }
});

after(async () => {
  await browser?.close();
  app?.closeAllConnections();
  app?.close();
});

const inAllTabs = (run, argument) => Promise.all(tabs.map((tab) => tab.evaluate(run, argument)));
const sessions = () => window.perennial.get('/authentication/tokens').then(({ data }) => data.length);
const userId = () => window.perennial.session.userId();

test('a sign-in in one tab reaches all tabs', async () => {
  const user = await tabs[0].evaluate(
    (given) => window.perennial.session.signIn(given, { signUp: true }),
    credentials('tabs@example.com'),
  );
  await until(async () => (await inAllTabs(userId)).every((id) => id === user.id));
  assert.deepEqual(await inAllTabs(sessions), Array(TABS).fill(1));
  assert.deepEqual(refreshes, [], 'the tabs have the access token of the first one');
  assert.deepEqual(await tabs[TABS - 1].evaluate(() => window.changes), [user.id]);
});

test(`${TABS} tabs whose access token expires at the same time send one refresh`, async () => {
  for (let round = 1; round <= ROUNDS; round += 1) {
    refreshes = [];
    const results = await inAllTabs(
      async ({ at, hours }) => {
        window.realNow ??= Date.now;
        await new Promise((resolve) => setTimeout(resolve, at - window.realNow()));
        // The access token is valid for 15 minutes.
        Date.now = () => window.realNow() + hours * 3_600_000;
        const { data } = await window.perennial.get('/authentication/tokens');
        return data.length;
      },
      { at: Date.now() + 1500, hours: round },
    );
    assert.deepEqual(results, Array(TABS).fill(1));
    assert.deepEqual(refreshes, [200], `round ${round}`);
  }
});

test('an access token that the service rejects in all tabs is refreshed once', async () => {
  refreshes = [];
  // Rejects the access tokens that the tabs have, as the service does after an operator has replaced its signing key.
  perennial('keys', 'rotate', '--refuse-old');
  await new Promise((resolve) => setTimeout(resolve, 2000));
  assert.deepEqual(await inAllTabs(sessions), Array(TABS).fill(1));
  assert.deepEqual(refreshes, [200]);
});

test('tabs that are reloaded at the same time stay signed in', async () => {
  refreshes = [];
  await Promise.all(tabs.map((tab) => tab.reload().then(() => tab.waitForFunction(() => window.perennial))));
  assert.deepEqual(await inAllTabs(sessions), Array(TABS).fill(1));
  assert.ok(refreshes.length <= TABS);
  assert.deepEqual(new Set(refreshes), new Set([200]));
});

test('a tab that misses the messages of other tabs stays signed in', async () => {
  const isolated = await context.newPage();
  await isolated.addInitScript(() => {
    window.BroadcastChannel.prototype.addEventListener = () => undefined;
  });
  await isolated.goto(tabs[0].url());
  await isolated.waitForFunction(() => window.perennial);
  assert.equal(await isolated.evaluate(sessions), 1);
  // Now the isolated tab has a refresh token whose second use would end the session.
  for (const tab of tabs.slice(0, 3)) {
    await tab.evaluate(async () => window.perennial.session.refresh(await window.perennial.session.accessToken()));
  }
  const isRefreshed = await isolated.evaluate(async () => {
    const rejected = await window.perennial.session.accessToken();
    return (await window.perennial.session.refresh(rejected)) !== rejected;
  });
  assert.ok(isRefreshed);
  assert.equal(await isolated.evaluate(sessions), 1);
  await isolated.close();
  assert.deepEqual(await inAllTabs(sessions), Array(TABS).fill(1));
});

test('a tab that is closed before the response to its refresh arrives does not sign the user out', LIMIT, async () => {
  const closing = await context.newPage();
  await closing.goto(tabs[0].url());
  await closing.waitForFunction(() => window.perennial);
  const closed = new Promise((resolve) => {
    void closing.route('**/refresh-token', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      return closing.close().then(resolve);
    });
  });
  void closing.evaluate(sessions).catch(() => undefined);
  await closed;
  refreshes = [];
  await inAllTabs(async () => window.perennial.session.refresh(await window.perennial.session.accessToken()));
  assert.deepEqual(new Set(refreshes), new Set([200]));
  assert.deepEqual(await inAllTabs(sessions), Array(TABS).fill(1));
});

test('the refresh token is the only token in storage', async () => {
  const stored = await tabs[0].evaluate(() => JSON.stringify({ ...localStorage }));
  assert.match(stored, /prn_rt_/);
  assert.doesNotMatch(stored, /eyJ/);
});

test('a sign-out in one tab reaches all tabs', async () => {
  await tabs[3].evaluate(() => window.perennial.session.signOut());
  await until(async () => (await inAllTabs(userId)).every((id) => id === undefined));
  const codes = await inAllTabs(() => window.perennial.get('/authentication/tokens').catch(({ code }) => code));
  assert.deepEqual(codes, Array(TABS).fill('invalid_token'));
});

function createWithSecretKey() {
  try {
    return new window.Perennial({ url: '/', clientId: 'prn_sk_x' });
  } catch (error) {
    return error.message;
  }
}

test('a secret API key is refused in a page', async () => {
  assert.match(await tabs[0].evaluate(createWithSecretKey), /must not be used in a web page/);
});
