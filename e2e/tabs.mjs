// Tabs of one browser that share a session of the SDK, on another origin than the service.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { check, drive, settings, until, url, watch } from './harness.mjs';

const { variables, command, port, sdk } = settings;
const TABS = 20;
const ROUNDS = 3;
const EMAIL = 'tabs@example.com';

let context;
const tabs = [];
/** The statuses of the responses to refreshes. */
let refreshes = [];

/** Runs a command of `perennial` and returns its output. */
const perennial = (...args) => execFileSync(command[0], [...command.slice(1), ...args], { env: variables, encoding: 'utf8' }).trim();

/** Serves a page that uses the SDK, and opens it in all tabs. */
async function open(browser) {
  const origin = `http://127.0.0.1:${port}`;
  const options = ['--name', 'tabs', '--kind', 'publishable', '--allowed-origin', origin];
  const clientId = JSON.parse(perennial('client', 'create', '--json', ...options)).client_id;
  const script = `
    import { Perennial } from '/sdk.js';
    window.perennial = new Perennial(${JSON.stringify({ url, clientId })});
    window.Perennial = Perennial;
    window.changes = [];
    window.perennial.session.onChange((userId) => window.changes.push(userId ?? null));
  `;
  const files = {
    '/': ['text/html', `<!doctype html><title>Tab</title><link rel="icon" href="data:,"><script type="module">${script}</script>`],
    '/sdk.js': ['text/javascript', readFileSync(sdk)],
  };
  const app = createServer((request, response) => {
    const [type, content] = files[request.url] ?? files['/'];
    response.setHeader('content-type', type).end(content);
  });
  await new Promise((resolve) => {
    app.listen(port, '127.0.0.1', resolve);
  });
  context = await browser.newContext();
  context.on('response', (response) => {
    const isRefresh = response.url().endsWith('/refresh-token') && response.request().method() === 'POST';
    if (isRefresh) refreshes.push(response.status());
  });
  while (tabs.length < TABS) tabs.push(await openTab(origin));
}

async function openTab(address = tabs[0].url(), prepare = () => undefined) {
  const tab = await watch(await context.newPage(), [`http://127.0.0.1:${port}/`, `${url}/`], { mayFail: true });
  await tab.addInitScript(prepare);
  await tab.goto(address);
  await tab.waitForFunction(() => window.perennial);
  return tab;
}

const inAllTabs = (run, argument) => Promise.all(tabs.map((tab) => tab.evaluate(run, argument)));
const sessions = () => window.perennial.get('/authentication/tokens').then(({ data }) => data.length);
const refresh = async () => {
  const rejected = await window.perennial.session.accessToken();
  return (await window.perennial.session.refresh(rejected)) !== rejected;
};

/** Checks a value in all tabs. */
async function checkAll(name, run, expected, argument) {
  const values = await inAllTabs(run, argument);
  check(values.length === TABS && values.every((value) => value === expected), `${name}: ${values}`);
}
const checkSessions = (name) => checkAll(`${name}: one session`, sessions, 1);

/** Checks the number of refreshes, and that the service has accepted each. */
function checkRefreshes(name, isExpected) {
  check(isExpected(refreshes.length) && refreshes.every((status) => status === 200), `${name}: refreshes ${refreshes}`);
  refreshes = [];
}

const userIds = () => inAllTabs(() => window.perennial.session.userId());
const waitForUser = (expected) =>
  until(async () => (await userIds()).every((id) => id === expected), `the user is ${expected} in all tabs`);

async function checkSignIn() {
  const given = { email: EMAIL, access_token: perennial('sandbox', 'token', EMAIL) };
  const user = await tabs[0].evaluate((credentials) => window.perennial.session.signIn(credentials, { signUp: true }), given);
  await waitForUser(user.id);
  await checkSessions('a sign-in reaches all tabs');
  checkRefreshes('the tabs have the access token of the first one', (count) => count === 0);
  const changes = await tabs.at(-1).evaluate(() => window.changes);
  check(changes.length === 1 && changes[0] === user.id, `the last tab has seen ${changes}`);
}

/** Waits until a time, and then counts the sessions when this many hours have passed. The access token is valid for 15 minutes. */
async function countSessionsLater({ at, hours }) {
  window.realNow ??= Date.now;
  await new Promise((resolve) => {
    setTimeout(resolve, at - window.realNow());
  });
  Date.now = () => window.realNow() + hours * 3_600_000;
  return (await window.perennial.get('/authentication/tokens')).data.length;
}

/** Tabs whose access token expires at the same time send one refresh. */
async function checkExpiry() {
  for (let round = 1; round <= ROUNDS; round += 1) {
    await checkAll(`round ${round}: one session`, countSessionsLater, 1, { at: Date.now() + 1500, hours: round });
    checkRefreshes(`round ${round}`, (count) => count === 1);
  }
}

/** Access tokens that the service rejects, after an operator has replaced its signing key, are refreshed once. */
async function checkRejection() {
  perennial('keys', 'rotate', '--refuse-old');
  await sleep(2000);
  await checkSessions('rejected tokens');
  checkRefreshes('rejected tokens', (count) => count === 1);
}

async function checkReload() {
  await Promise.all(tabs.map((tab) => tab.reload().then(() => tab.waitForFunction(() => window.perennial))));
  await checkSessions('after a reload');
  checkRefreshes('after a reload', (count) => count >= 1 && count <= TABS);
}

/** A tab that misses the messages of other tabs stays signed in. */
async function checkIsolatedTab() {
  const isolated = await openTab(undefined, () => {
    window.BroadcastChannel.prototype.addEventListener = () => undefined;
  });
  check((await isolated.evaluate(sessions)) === 1, 'an isolated tab has the session');
  // Now the isolated tab has a refresh token whose second use would end the session.
  for (const tab of tabs.slice(0, 3)) await tab.evaluate(refresh);
  check(await isolated.evaluate(refresh), 'an isolated tab gets another access token');
  check((await isolated.evaluate(sessions)) === 1, 'an isolated tab keeps the session');
  await isolated.close();
  await checkSessions('beside an isolated tab');
}

/** A tab that is closed before the response to its refresh arrives does not sign the user out. */
async function checkClosedTab() {
  const closing = await openTab();
  const closed = new Promise((resolve) => {
    void closing.route('**/refresh-token', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      return closing.close().then(resolve);
    });
  });
  void closing.evaluate(sessions).catch(() => undefined);
  // Without a refresh, the test would wait forever.
  await Promise.race([closed, sleep(30_000).then(() => check(false, 'the tab that is closed sends no refresh'))]);
  refreshes = [];
  await inAllTabs(refresh);
  checkRefreshes('after a tab was closed', (count) => count >= 1);
  await checkSessions('after a tab was closed');
}

async function checkStorage() {
  const stored = await tabs[0].evaluate(() => JSON.stringify({ ...localStorage }));
  check(stored.includes('prn_rt_') && !stored.includes('eyJ'), 'the refresh token is the only token in storage');
  const refused = await tabs[0].evaluate(() => {
    try {
      return new window.Perennial({ url: '/', clientId: 'prn_sk_x' });
    } catch (error) {
      return error.message;
    }
  });
  check(/must not be used in a web page/.test(refused), `a secret API key in a page: ${refused}`);
}

async function checkSignOut() {
  await tabs[3].evaluate(() => window.perennial.session.signOut());
  await waitForUser();
  await checkAll('after the sign-out', () => window.perennial.get('/authentication/tokens').catch(({ code }) => code), 'invalid_token');
}

await drive([checkSignIn, checkExpiry, checkRejection, checkReload, checkIsolatedTab, checkClosedTab, checkStorage, checkSignOut], open);
