// Does in Chromium what a guide asks its reader to do. tools/guides passes the settings as JSON. The session of the browser and the
// coverage of its scripts are saved for the next step, and for the check at the end.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// Installed for the tests of the SDK.
const require = createRequire(new URL('../../clients/typescript/package.json', import.meta.url));
const { chromium } = require('playwright-core');

const { guide, step, origin, token, public: folder, coverage, state } = JSON.parse(process.argv[2]);
/** Of one action, in milliseconds. */
const TIMEOUT = 10_000;

/** Waits until an element shows a text, and returns it. */
const see = async (page, selector, text) => {
  await page.locator(selector).filter({ hasText: text }).waitFor();
};

async function signIn(page, accessToken) {
  await page.goto(`${origin}/account.html`);
  await page.getByLabel('Email').fill('ada@example.com');
  await page.getByLabel('Token').fill(accessToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Lets the access token in the cookie expire, as it does after 15 minutes. */
async function expireAccessToken(context) {
  const [cookie] = (await context.cookies()).filter(({ name }) => name === 'billing_session');
  assert.ok(cookie.httpOnly && cookie.sameSite === 'Lax', JSON.stringify(cookie));
  const tokens = JSON.parse(decodeURIComponent(cookie.value).slice(2));
  const value = encodeURIComponent(`j:${JSON.stringify({ ...tokens, expiresAt: 0 })}`);
  await context.addCookies([{ ...cookie, value }]);
  return value;
}

const steps = {
  'add-subscriptions-to-an-app': [
    async (page) => {
      await signIn(page, 'not-a-token');
      await see(page, '#message', /\w/);
      await signIn(page, token);
      await see(page, '#email', 'ada@example.com');
      await see(page, '#plans', 'Pro, $19.99 monthly: Reports, Audit log');
      const pro = page.locator('#plans li').filter({ hasText: 'Pro' });
      await pro.getByRole('button').click();
      await see(page, '#subscriptions', 'pro: pending, $19.99 due');
      await pro.getByRole('button').click();
      await see(page, '#message', 'You have a subscription.');
      // A user cannot start a subscription that is not paid.
      const { status, account } = await page.evaluate(async () => {
        const response = await fetch('/billing/undo-cancel', { method: 'POST' });
        return { status: response.status, account: await (await fetch('/billing/account')).json() };
      });
      assert.deepEqual([status, account.subscriptions[0].status], [409, 'pending']);
    },
    async (page, context) => {
      const expired = await expireAccessToken(context);
      await page.goto(`${origin}/account.html`);
      await see(page, '#subscriptions', /pro: active, next period on \w+ \d+, \d{4}/);
      const [cookie] = (await context.cookies()).filter(({ name }) => name === 'billing_session');
      assert.notEqual(cookie.value, expired, 'the tokens were not refreshed');
      await page.getByRole('button', { name: 'Cancel' }).click();
      await see(page, '#subscriptions', /pro: ends on \w+ \d+, \d{4}/);
      await page.getByRole('button', { name: 'Keep it' }).click();
      await see(page, '#subscriptions', 'pro: active');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('button', { name: 'Sign in' }).waitFor();
      assert.deepEqual(await context.cookies(), []);
    },
  ],
  'gate-a-feature': [
    async (page) => {
      await page.goto(origin);
      await see(page, '[data-without-feature]:visible', 'The audit log is part of Pro.');
      assert.ok(await page.locator('[data-feature]').isHidden());
      await signIn(page, token);
      await see(page, '#email', 'ada@example.com');
      await page.goto(origin);
      await see(page, '[data-feature]:visible', 'Audit log');
      assert.ok(await page.locator('[data-without-feature]').isHidden());
      const checked = page.waitForResponse(`${origin}/me`);
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
      assert.equal((await checked).status(), 200);
    },
  ],
};

const action = steps[guide]?.[step];
assert.ok(action, `browse.mjs has no step ${step + 1} of ${guide}`);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const context = await browser.newContext(existsSync(state) ? { storageState: state } : {});
  context.setDefaultTimeout(TIMEOUT);
  const page = await context.newPage();
  const loaded = new Set();
  page.on('response', (response) => loaded.add(response.url()));
  await page.coverage.startJSCoverage({ resetOnNavigation: false });
  await action(page, context);
  const scripts = await page.coverage.stopJSCoverage();
  await context.storageState({ path: state });
  const fileUrl = (url) => pathToFileURL(folder + new URL(url).pathname.replace(/\/$/, '/index.html')).href;
  const documents = [...loaded].map((url) => ({ url: fileUrl(url), functions: [] }));
  const result = [...documents, ...scripts.map(({ url, functions }) => ({ url: fileUrl(url), functions }))];
  writeFileSync(`${coverage}/browser-${step}.json`, JSON.stringify({ result }));
} finally {
  await browser.close();
}
