// Does what a guide asks its reader to do in a browser. The session of the browser and the coverage of its scripts are saved for the next
// step, and for the check at the end.
import { existsSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { check, drive, openPage, settings } from './harness.mjs';

const { guide, step, origin, token, folder, coverage, state } = settings;
/** Of one action, in milliseconds. */
const TIMEOUT = 10_000;

/** Waits until an element shows a text. */
async function see(page, selector, text) {
  await page.locator(selector).filter({ hasText: text }).waitFor();
  check(true, `${selector} shows ${text}`);
}

async function signIn(page, accessToken) {
  await page.goto(`${origin}/account.html`);
  await page.getByLabel('Email').fill('ada@example.com');
  await page.getByLabel('Token').fill(accessToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const sessionCookie = async (page) => (await page.context().cookies()).find(({ name }) => name === 'billing_session');

/** Lets the access token in the cookie expire, as it does after 15 minutes. Returns the value of the cookie. */
async function expireAccessToken(page) {
  const cookie = await sessionCookie(page);
  check(cookie.httpOnly && cookie.sameSite === 'Lax', JSON.stringify(cookie));
  const tokens = JSON.parse(decodeURIComponent(cookie.value).slice(2));
  const value = encodeURIComponent(`j:${JSON.stringify({ ...tokens, expiresAt: 0 })}`);
  await page.context().addCookies([{ ...cookie, value }]);
  return value;
}

const STEPS = {
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
      check(status === 409 && account.subscriptions[0].status === 'pending', `an undone cancellation gives ${status}`);
    },
    async (page) => {
      const expired = await expireAccessToken(page);
      await page.goto(`${origin}/account.html`);
      await see(page, '#subscriptions', /pro: active, next period on \w+ \d+, \d{4}/);
      check((await sessionCookie(page)).value !== expired, 'the tokens were not refreshed');
      await page.getByRole('button', { name: 'Cancel' }).click();
      await see(page, '#subscriptions', /pro: ends on \w+ \d+, \d{4}/);
      await page.getByRole('button', { name: 'Keep it' }).click();
      await see(page, '#subscriptions', 'pro: active');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('button', { name: 'Sign in' }).waitFor();
      check((await page.context().cookies()).length === 0, 'a cookie remains after the sign-out');
    },
  ],
  'gate-a-feature': [
    async (page) => {
      await page.goto(origin);
      await see(page, '[data-without-feature]:visible', 'The audit log is part of Pro.');
      check(await page.locator('[data-feature]').isHidden(), 'the feature is shown to a visitor');
      await signIn(page, token);
      await see(page, '#email', 'ada@example.com');
      await page.goto(origin);
      await see(page, '[data-feature]:visible', 'Audit log');
      check(await page.locator('[data-without-feature]').isHidden(), 'the feature is locked for a subscriber');
      const checked = page.waitForResponse(`${origin}/me`);
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
      check((await checked).status() === 200, 'the user is not checked again');
    },
  ],
};

/** Returns the URL of the file that a URL of the app leads to. */
const fileUrl = (url) => pathToFileURL(folder + new URL(url).pathname.replace(/\/$/, '/index.html')).href;

async function checkStep(browser) {
  const page = await openPage(browser, [`${origin}/`], { mayFail: true, storageState: existsSync(state) ? state : undefined });
  page.setDefaultTimeout(TIMEOUT);
  const loaded = new Set();
  page.on('response', (response) => loaded.add(response.url()));
  await page.coverage.startJSCoverage({ resetOnNavigation: false });
  const action = STEPS[guide]?.[step];
  if (!action) throw new Error(`guides.mjs has no step ${step + 1} of ${guide}`);
  await action(page);
  const scripts = await page.coverage.stopJSCoverage();
  await page.context().storageState({ path: state });
  const documents = [...loaded].map((url) => ({ url: fileUrl(url), functions: [] }));
  const result = [...documents, ...scripts.map(({ url, functions }) => ({ url: fileUrl(url), functions }))];
  writeFileSync(`${coverage}/browser-${step}.json`, JSON.stringify({ result }));
}

await drive([checkStep]);
