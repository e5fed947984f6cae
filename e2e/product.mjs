// Checks examples/product, from the sign-up to the end of a subscription.
import { readdirSync, readFileSync } from 'node:fs';
import { check, drive, illustrate, look, openPage, server, settings, until } from './harness.mjs';

const { product, stripe } = settings;
const MARKUP = "<img src=x onerror=document.title='injected'>";
const EMAIL = 'ada@example.com';

const openTab = (browser, options) => openPage(browser, [`${product}/`, `${stripe}/`], { mayFail: true, ...options });
const browserOf = (page) => page.context().browser();
const open = (page, path) => page.goto(product + path);
const text = (page, selector) => page.locator(selector).first().innerText();
/** Clicks a button or link, and waits for the page that it leads to. */
const follow = (page, target) => Promise.all([page.waitForEvent('load'), target.click()]);
const press = (page, name) => follow(page, page.getByRole('button', { name, exact: true }));
const pressCancel = (page) => follow(page, page.getByRole('link', { name: 'Cancel', exact: true }));

/** Checks how the text of an element starts. */
async function checkText(page, selector, start) {
  const shown = await text(page, selector);
  check(shown.startsWith(start), `${page.url()} says "${shown}" instead of "${start}"`);
}

/** Writes a picture of the documentation, with the font of the console instead of one of this machine. */
async function illustratePage(page, name, height) {
  const assets = new URL('../console/dist/assets/', import.meta.url);
  const file = readdirSync(assets).find((entry) => /^inter-latin-.*\.woff2$/.test(entry));
  const font = `url(data:font/woff2;base64,${readFileSync(new URL(file, assets), 'base64')})`;
  const storageState = await page.context().storageState();
  await illustrate(`product-${name}`, height, async (options) => {
    const context = await browserOf(page).newContext({ ...options, storageState, bypassCSP: true });
    const shown = await context.newPage();
    await shown.goto(page.url());
    await shown.addStyleTag({ content: `@font-face { font-family: Inter; font-weight: 100 900; src: ${font} }` });
    await shown.evaluate(() => document.fonts.ready);
    return shown;
  });
}

/** Reloads the account page until its sentence about the plan matches. */
async function waitForSentence(page, pattern) {
  let sentence;
  const isShown = async () => {
    await open(page, '/account');
    sentence = await text(page, '.sentence');
    return pattern.test(sentence);
  };
  await until(isShown, () => `the account page says "${sentence}" instead of ${pattern}`);
}

/** Checks which parts of the report are locked, without waiting: the webhook has made the entitlements current. */
async function checkFeature(page, isUnlocked, step) {
  await open(page, '/check');
  const [locked, marked] = [await page.locator('.locked').count(), await page.locator('mark').count()];
  check(locked === (isUnlocked ? 0 : 3), `${step}: ${locked} parts of the report are locked`);
  check(marked > 0 === isUnlocked, `${step}: ${marked} words are marked`);
}

async function signIn(page, email) {
  await page.getByLabel('Email address').fill(email);
  await press(page, 'Continue');
}

async function checkVisitor(page) {
  await open(page, '/');
  check((await page.locator('.plan').count()) === 3, 'the pricing page has three plans');
  check((await text(page, '.plan.popular .price')) === '$14 per month', `the price is ${await text(page, '.plan.popular .price')}`);
  await look(page, 'pricing');
  if (settings.docs) await illustratePage(page, 'pricing', 720);
  for (const path of ['/account', '/check', '/welcome', '/account/cancel']) {
    await open(page, path);
    check(page.url().startsWith(`${product}/sign-in`), `${path} requires a sign-in`);
  }
  const response = await open(page, '/nothing');
  check(response.status() === 404, 'an unknown page is 404');
  await look(page, 'not-found');
}

async function checkSignUp(page) {
  await open(page, '/');
  await press(page, 'Choose Pro');
  check(page.url() === `${product}/sign-in?next=/`, `a purchase requires a sign-in: ${page.url()}`);
  await look(page, 'sign-in');
  await signIn(page, EMAIL);
  check((await text(page, '.who span')) === EMAIL, 'the header shows the user');
  await open(page, '/account');
  check((await text(page, '#plan')) === 'No plan yet', 'a new user has no plan');
  await look(page, 'account-empty');
  // Stores in the cache that the user has nothing. Only the webhook removes that before a minute has passed.
  await checkFeature(page, false, 'before the purchase');
  await look(page, 'check-locked');
}

async function checkPurchase(page) {
  await open(page, '/');
  await press(page, 'Choose Pro');
  check(page.url().startsWith(`${stripe}/c/pay/`), `the purchase leads to the payment provider: ${page.url()}`);
  await look(page, 'checkout');
  await press(page, 'Pay');
  check(page.url() === `${product}/account?notice=welcome`, `the payment leads to the account: ${page.url()}`);
  await checkText(page, '.sentence', 'You have Pro. The next payment of $14 is on ');
  await look(page, 'account-active');
  await checkFeature(page, true, 'after the purchase');
  await look(page, 'check');
  await open(page, '/');
  check((await page.getByRole('button', { name: /^Choose/ }).count()) === 0, 'a subscriber cannot buy a second plan by mistake');
  await look(page, 'pricing-subscribed');
}

/** Markup in the text of the user, in the name of a plan and in the name of a device is shown as text. */
async function checkMarkup(page) {
  await open(page, '/check');
  await page.getByLabel('Your text').fill(`Really ${MARKUP} </textarea>`);
  await press(page, 'Check');
  check((await page.getByLabel('Your text').inputValue()) === `Really ${MARKUP} </textarea>`, 'the text is unchanged');
  check((await text(page, '.marked')).includes(MARKUP), 'markup in a text is shown as text');
  const fields = { name: MARKUP, description: MARKUP, features: MARKUP, slug: 'markup', price: 1, billing_cycle: 'monthly' };
  await server('POST', '/subscription-plans', fields);
  await open(page, '/');
  check((await page.locator('.plan h3').allInnerTexts()).includes(MARKUP), 'markup in the name of a plan is shown as text');
  await server('PUT', '/subscription-plans/markup', { is_active: false });

  const other = await openTab(browserOf(page), { userAgent: MARKUP });
  await open(other, '/sign-in?next=https://example.com/');
  await signIn(other, EMAIL);
  check(other.url() === `${product}/`, `a sign-in leads to this site only: ${other.url()}`);
  await open(page, '/account');
  check((await page.locator('.rows strong').allInnerTexts()).includes(MARKUP), 'markup in the name of a device is shown as text');
  for (const tab of [page, other]) {
    check((await tab.locator('img[src=x]').count()) === 0, 'no element comes from markup');
    check((await tab.title()) !== 'injected', 'no script comes from markup');
  }
  await press(page, `Sign out ${MARKUP}`);
  check((await page.locator('.rows li').count()) === 1, 'the device is gone');
  await open(other, '/account');
  check(other.url().startsWith(`${product}/sign-in`), 'the other device is signed out');
  await other.context().close();
}

async function checkFailedRenewal(page) {
  await open(page, '/sandbox');
  await look(page, 'sandbox');
  await press(page, 'Decline my card');
  await press(page, 'A month later');
  await waitForSentence(page, /^The last payment for Pro failed\. You still have access/);
  const isListed = async (status) => (await open(page, '/account')) && (await page.locator('td').allInnerTexts()).includes(status);
  await until(() => isListed('Failed'), 'the failed payment is listed');
  await look(page, 'account-past-due');
  await checkFeature(page, true, 'while the payment is late');
  await open(page, '/account');
  await press(page, 'Update my card');
  check(page.url().startsWith(`${stripe}/p/session/`), `the card is changed at the payment provider: ${page.url()}`);
  await look(page, 'portal');
  await press(page, 'Use a new card');
  await waitForSentence(page, /^You have Pro\. The next payment/);
  await until(async () => !(await isListed('Failed')), 'the payment is no longer failed');
  const phone = await openTab(browserOf(page), { userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/605.1' });
  await open(phone, '/sign-in');
  await signIn(phone, EMAIL);
  await open(page, '/account');
  check((await page.locator('.rows li').count()) === 2, 'both devices are listed');
  await look(page, 'account-recovered');
  if (settings.docs) await illustratePage(page, 'account', 1010);
  await press(page, 'Sign out all other devices');
  check((await page.locator('.rows li').count()) === 1, 'only this device is left');
  await phone.context().close();
}

async function checkCancellation(page) {
  const [subscription] = (await server('GET', '/subscriptions')).data;
  const atStripe = async () => (await fetch(`${stripe}/_control/objects/${subscription.external_subscription_id}`)).json();
  const cancel = async () => {
    await open(page, '/account');
    await pressCancel(page);
    await press(page, 'Cancel my plan');
  };
  await open(page, '/account');
  await pressCancel(page);
  await checkText(page, '.lead', 'You keep your access until ');
  await look(page, 'cancel');
  // Another change in the meantime.
  await server('PUT', `/subscriptions/${subscription.id}`, { metadata: { note: 'changed' } });
  await press(page, 'Cancel my plan');
  await checkText(page, '.notice', 'Your subscription has changed');
  await checkText(page, '.sentence', 'You have Pro.');

  await cancel();
  await checkText(page, '.sentence', 'You have cancelled Pro. You have access until ');
  await look(page, 'account-cancelled');
  await checkFeature(page, true, 'until the end of the period');
  await until(async () => (await atStripe()).cancel_at_period_end === true, 'the cancellation reaches the payment provider');
  await open(page, '/account');
  await press(page, 'Keep my plan');
  await checkText(page, '.sentence', 'You have Pro. ');
  await waitForSentence(page, /^You have Pro\. The next payment of \$14 is on /);
  await until(async () => (await atStripe()).cancel_at_period_end === false, 'the undoing reaches the payment provider');

  await cancel();
  await until(async () => (await atStripe()).cancel_at_period_end === true, 'the second cancellation reaches the payment provider');
  await open(page, '/sandbox');
  await press(page, 'A month later');
  await waitForSentence(page, /^Your Pro plan ended on .*\. Choose a plan to continue\.$/);
  await look(page, 'account-ended');
  await until(async () => (await open(page, '/check')) && (await page.locator('.locked').count()) === 3, 'the report is locked at the end');
  await open(page, '/');
  check((await page.getByRole('button', { name: 'Choose Pro', exact: true }).count()) === 1, 'the plan can be bought again');
}

/** A user cannot cancel the subscription of another user. */
async function checkOtherUser(page) {
  const other = await openTab(browserOf(page));
  await open(other, '/sign-in');
  await signIn(other, 'grace@example.com');
  const [{ id, status }] = (await server('GET', '/subscriptions')).data;
  const [{ name, value }] = await other.context().cookies();
  const form = {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie: `${name}=${value}` },
    body: new URLSearchParams({ id, etag: '*' }),
  };
  const response = await fetch(`${product}/account/cancel`, form);
  check(response.status === 404, `the subscription of another user is not found: ${response.status}`);
  check((await server('GET', `/subscriptions/${id}`)).status === status, 'the subscription of another user is unchanged');
  await other.context().close();
}

async function checkSignOut(page) {
  const [cookie] = await page.context().cookies();
  check(cookie.httpOnly && cookie.sameSite === 'Lax', 'scripts cannot read the session cookie');
  await press(page, 'Sign out');
  check((await page.context().cookies()).length === 0, 'the session cookie is removed');
  const headers = { cookie: `${cookie.name}=${cookie.value}` };
  const replayed = await fetch(`${product}/account`, { headers, redirect: 'manual' });
  check(replayed.headers.get('location')?.startsWith('/sign-in'), `a copy of the cookie is useless: ${replayed.status}`);
  const foreign = await fetch(`${product}/sign-out`, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } });
  check(foreign.status === 403, `a form of another site is refused: ${foreign.status}`);
  const forged = await fetch(`${product}/webhooks`, { method: 'POST', body: '{}' });
  check(forged.status === 401, `an unsigned webhook is refused: ${forged.status}`);
  check((await fetch(`${product}//`)).status === 400, 'a target that is no path is refused');
  const policy = (await fetch(product)).headers.get('content-security-policy');
  check(policy.startsWith("default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' "), `the policy is ${policy}`);
}

const parts = [checkVisitor, checkSignUp, checkPurchase, checkMarkup, checkOtherUser, checkFailedRenewal, checkCancellation, checkSignOut];
await drive(parts, openTab);
