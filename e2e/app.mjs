// Checks examples/single-page-app, which is on another origin than the sandbox. Its user has one subscription.
import { check, drive, look, quick, server, settings, url, watch } from './harness.mjs';

const { app, email, token } = settings;
const ROUNDS = quick ? 2 : 4;

const storedStatus = async () => (await server('GET', '/subscriptions')).data[0].status;
const ready = (page) => page.waitForSelector('body[data-ready]');
const cancelButton = (page) => page.locator('article').getByRole('button', { name: 'Cancel subscription' });
const confirmButton = (page) => page.locator('dialog').getByRole('button', { name: 'Cancel subscription' });
const undoButton = (page) => page.getByRole('button', { name: 'Keep my subscription' });
const status = (page) => page.locator('[data-part=status]').textContent();

/** Opens the app in a new tab. */
async function openTab(context) {
  const page = await watch(await context.newPage(), [`${app}/`, `${url}/`], { mayFail: true });
  await page.goto(app);
  await ready(page);
  return page;
}

async function signIn(page) {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await cancelButton(page).waitFor();
}

async function checkCancelAndUndo({ context }) {
  const page = await openTab(context);
  await look(page, 'sign-in');
  await signIn(page);
  check((await page.locator('#email').textContent()) === email, 'the page shows the user');
  check((await page.locator('h2').first().textContent()) === 'Pro <b>plan</b>', 'markup in a name is shown as text');
  check((await status(page)) === 'Active', 'the subscription is active');
  await look(page, 'active');

  await cancelButton(page).click();
  await look(page, 'confirm');
  await page.keyboard.press('Escape');
  check((await storedStatus()) === 'active', 'Escape does not cancel');
  await cancelButton(page).click();
  await confirmButton(page).click();
  await undoButton(page).waitFor();
  check((await storedStatus()) === 'cancelled', 'the service has cancelled it');
  check((await page.locator('[data-part=next]').textContent()).startsWith('You have access until '), 'the end is shown');
  await look(page, 'cancelled');

  // A change in between is noticed by its entity tag.
  const [{ id }] = (await server('GET', '/subscriptions')).data;
  await server('PUT', `/subscriptions/${id}`, { metadata: { note: 'changed' } });
  await undoButton(page).click();
  await page.getByText('has changed meanwhile').waitFor();
  check((await storedStatus()) === 'cancelled', 'an outdated page changes nothing');
  await undoButton(page).click();
  await cancelButton(page).waitFor();
  check((await storedStatus()) === 'active', 'the service has undone it');
  await page.close();
}

/** As if the access token of all tabs had expired at the same moment. */
async function countSessionsWithExpiredToken() {
  const { call } = await import('/session.js');
  const { fetch } = window;
  window.fetch = (target, options) => {
    window.fetch = fetch;
    return fetch(target, { ...options, headers: { ...options.headers, authorization: 'Bearer expired' } });
  };
  return (await call('GET', '/authentication/tokens')).json.data.length;
}

/** Tabs that refresh at the same time stay signed in with one session. */
async function refreshTogether(context, name) {
  const tabs = [await openTab(context), await openTab(context)];
  if (await tabs[0].locator('#sign-in').isVisible()) {
    await signIn(tabs[0]);
    await cancelButton(tabs[1]).waitFor();
  }
  let refreshed = 0;
  const countRefresh = (response) => {
    const isRefresh = response.url().endsWith('/refresh-token') && response.request().method() === 'POST';
    check(!isRefresh || response.ok(), `${name}: a refresh is refused with ${response.status()}`);
    refreshed += isRefresh;
  };
  for (const tab of tabs) tab.on('response', countRefresh);
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(tabs.map((tab) => tab.reload().then(() => ready(tab))));
    const results = await Promise.all(tabs.map((tab) => tab.evaluate(countSessionsWithExpiredToken)));
    check(results.join() === '1,1', `${name}, round ${round}: ${results} sessions`);
  }
  for (const tab of tabs) tab.off('response', countRefresh);
  check(refreshed >= 2 * ROUNDS, `${name}: only ${refreshed} refreshes`);
  for (const tab of tabs) check((await status(tab)) === 'Active', `${name}: a tab lost the session`);
  return tabs;
}

async function checkTabs({ context }) {
  const [first, second] = await refreshTogether(context, 'with locks');
  const accessToken = first.waitForRequest((request) => request.url().endsWith('/tokens/logout'));
  await first.getByRole('button', { name: 'Sign out' }).click();
  for (const tab of [first, second]) await tab.getByRole('button', { name: 'Sign in' }).waitFor();
  check((await second.locator('article').count()) === 0, 'nothing of the user remains on the page');
  const left = await second.evaluate(() => Object.keys(localStorage));
  check(left.length === 0, `localStorage keeps ${left}`);
  const { authorization, 'client-id': key } = await (await accessToken).allHeaders();
  const headers = { authorization, 'client-id': key };
  const refused = await fetch(`${url}/authentication/user-logged-in`, { method: 'POST', headers });
  check(refused.status === 401, `the access token is refused after the sign-out: ${refused.status}`);
  await context.close();
}

/** Old browsers have no locks. Then the tabs send the same refresh token, and get the same new one. */
async function checkTabsWithoutLocks(opened) {
  opened.context = await opened.browser.newContext();
  await opened.context.addInitScript(() => Object.defineProperty(Navigator.prototype, 'locks', { value: undefined }));
  [opened.page] = await refreshTogether(opened.context, 'without locks');
  await opened.page.getByRole('button', { name: 'Sign out' }).click();
  await opened.page.getByRole('button', { name: 'Sign in' }).waitFor();
}

/** A session that is revoked elsewhere ends with the next request. */
async function checkRevocation({ page }) {
  await signIn(page);
  await page.evaluate(async () => {
    const { call } = await import('/session.js');
    await call('POST', '/authentication/tokens/revoke-all');
  });
  await cancelButton(page).click();
  await confirmButton(page).click();
  await page.getByText('You have been signed out.').waitFor();
  check(await page.locator('#sign-in').isVisible(), 'a revoked session shows the sign-in form');
  check((await storedStatus()) === 'active', 'a revoked session changes nothing');
}

const parts = [checkCancelAndUndo, checkTabs, checkTabsWithoutLocks, checkRevocation];
await drive(parts, async (browser) => ({ browser, context: await browser.newContext() }));
