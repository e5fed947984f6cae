// Checks examples/product in Chromium, from the sign-up to the end of a subscription. tools/product starts it.
//
//   node product.mjs PICTURES [--quick] [--docs DIR] < settings
//
// The settings are JSON: what the start command of the product prints.
// `--docs` writes the pictures of the documentation, as WebP.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { check, finish, inspect, launch, watch } from "./harness.mjs";

const [pictures, ...flags] = process.argv.slice(2);
const quick = flags.includes("--quick");
const docs = flags.includes("--docs") ? flags[flags.indexOf("--docs") + 1] : undefined;
const { product, perennial, stripe, variables } = JSON.parse(readFileSync(0, "utf8"));

const LOOKS = [[390, "light"], [1440, "dark"], ...(quick ? [] : [[390, "dark"], [1440, "light"]])];
const MARKUP = "<img src=x onerror=document.title='injected'>";
const EMAIL = "ada@example.com";
/** How long a change may take from the payment provider to the page, in milliseconds. */
const CHANGE_TIMEOUT = 15_000;

/** Sends a request to Perennial as the product's server. */
async function server(method, path, body) {
  const headers = { "client-id": variables.CLIENT_ID, "content-type": "application/json" };
  const response = await fetch(perennial + path, { method, headers, body: body && JSON.stringify(body) });
  return response.json();
}

async function openTab(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  watch(page, [product, stripe]);
  return page;
}

const open = (page, path) => page.goto(product + path);
const text = (page, selector) => page.locator(selector).first().innerText();
/** Clicks a button or link, and waits for the page that it leads to. */
const follow = (page, target) => Promise.all([page.waitForEvent("load"), target.click()]);
const press = (page, name) => follow(page, page.getByRole("button", { name, exact: true }));
const pressCancel = (page) => follow(page, page.getByRole("link", { name: "Cancel", exact: true }));

/** Checks the page and takes a picture, at each width, in light and dark. */
async function look(page, name) {
  for (const [width, colorScheme] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await inspect(page, `${name}, ${width} px, ${colorScheme}`);
    await page.screenshot({ path: `${pictures}/product-${name}-${width}-${colorScheme}.png`, fullPage: true });
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** Writes a picture of the documentation in light and dark, with the font of the console instead of one of this machine. */
async function photograph(page, height) {
  if (!docs) return;
  const name = new URL(page.url()).pathname === "/" ? "pricing" : "account";
  const assets = fileURLToPath(new URL("../../console/dist/assets/", import.meta.url));
  const file = readdirSync(assets).find((entry) => /^inter-latin-.*\.woff2\.gz$/.test(entry));
  const font = gunzipSync(readFileSync(assets + file)).toString("base64");
  const storageState = await page.context().storageState();
  for (const colorScheme of ["light", "dark"]) {
    const viewport = { width: 1280, height };
    const context = await page.context().browser().newContext({ storageState, colorScheme, viewport, deviceScaleFactor: 1.5, bypassCSP: true });
    const shown = await context.newPage();
    await shown.goto(page.url());
    await shown.addStyleTag({ content: `@font-face { font-family: Inter; font-weight: 100 900; src: url(data:font/woff2;base64,${font}) }` });
    await shown.evaluate(() => document.fonts.ready);
    const protocol = await context.newCDPSession(shown);
    const { data } = await protocol.send("Page.captureScreenshot", { format: "webp", quality: 82 });
    writeFileSync(`${docs}/product-${name}-${colorScheme}.webp`, Buffer.from(data, "base64"));
    await context.close();
  }
}

/** Reloads the account page until its sentence about the plan matches. */
async function waitForSentence(page, pattern) {
  const deadline = Date.now() + CHANGE_TIMEOUT;
  for (;;) {
    await open(page, "/account");
    const sentence = await text(page, ".sentence");
    if (pattern.test(sentence) || Date.now() > deadline) {
      check(pattern.test(sentence), `the account page says "${sentence}" instead of ${pattern}`);
      return sentence;
    }
    await page.waitForTimeout(200);
  }
}

/** Checks which parts of the report are locked, without waiting: the webhook has made the entitlements current. */
async function checkFeature(page, isUnlocked, step) {
  await open(page, "/check");
  const [locked, marked] = [await page.locator(".locked").count(), await page.locator("mark").count()];
  check(locked === (isUnlocked ? 0 : 3), `${step}: ${locked} parts of the report are locked`);
  check(marked > 0 === isUnlocked, `${step}: ${marked} words are marked`);
}

async function signIn(page, email) {
  await page.getByLabel("Email address").fill(email);
  await press(page, "Continue");
}

async function checkVisitor(page) {
  await open(page, "/");
  check((await page.locator(".plan").count()) === 3, "the pricing page has three plans");
  check((await text(page, ".plan.popular .price")) === "$14 per month", `the price is ${await text(page, ".plan.popular .price")}`);
  await look(page, "pricing");
  await photograph(page, 720);
  for (const path of ["/account", "/check", "/welcome", "/account/cancel"]) {
    await open(page, path);
    check(page.url().startsWith(`${product}/sign-in`), `${path} requires a sign-in`);
  }
  const response = await open(page, "/nothing");
  check(response.status() === 404, "an unknown page is 404");
  await look(page, "not-found");
}

async function checkSignUp(page) {
  await open(page, "/");
  await press(page, "Choose Pro");
  check(page.url() === `${product}/sign-in?next=/`, `a purchase requires a sign-in: ${page.url()}`);
  await look(page, "sign-in");
  await signIn(page, EMAIL);
  check((await text(page, ".who span")) === EMAIL, "the header shows the user");
  await open(page, "/account");
  check((await text(page, "#plan")) === "No plan yet", "a new user has no plan");
  await look(page, "account-empty");
  // Stores in the cache that the user has nothing. Only the webhook removes that before a minute has passed.
  await checkFeature(page, false, "before the purchase");
  await look(page, "check-locked");
}

async function checkPurchase(page) {
  await open(page, "/");
  await press(page, "Choose Pro");
  check(page.url().startsWith(`${stripe}/c/pay/`), `the purchase leads to the payment provider: ${page.url()}`);
  await look(page, "checkout");
  await press(page, "Pay");
  check(page.url() === `${product}/account?notice=welcome`, `the payment leads to the account: ${page.url()}`);
  check(/^You have Pro\. The next payment of \$14 is on /.test(await text(page, ".sentence")), `paid: ${await text(page, ".sentence")}`);
  await look(page, "account-active");
  await checkFeature(page, true, "after the purchase");
  await look(page, "check");
  await open(page, "/");
  check((await page.getByRole("button", { name: /^Choose/ }).count()) === 0, "a subscriber cannot buy a second plan by mistake");
  await look(page, "pricing-subscribed");
}

/** Markup in the text of the user, in the name of a plan and in the name of a device is shown as text. */
async function checkMarkup(page, browser) {
  await open(page, "/check");
  await page.getByLabel("Your text").fill(`Really ${MARKUP} </textarea>`);
  await press(page, "Check");
  check((await page.getByLabel("Your text").inputValue()) === `Really ${MARKUP} </textarea>`, "the text is unchanged");
  check((await text(page, ".marked")).includes(MARKUP), "markup in a text is shown as text");
  const fields = { name: MARKUP, description: MARKUP, features: MARKUP, slug: "markup", price: 1, billing_cycle: "monthly" };
  await server("POST", "/subscription-plans", fields);
  await open(page, "/");
  check((await page.locator(".plan h3").allInnerTexts()).includes(MARKUP), "markup in the name of a plan is shown as text");
  await server("PUT", "/subscription-plans/markup", { is_active: false });

  const other = await openTab(browser, { userAgent: MARKUP });
  await open(other, "/sign-in?next=https://example.com/");
  await signIn(other, EMAIL);
  check(other.url() === `${product}/`, `a sign-in leads to this site only: ${other.url()}`);
  await open(page, "/account");
  check((await page.locator(".rows strong").allInnerTexts()).includes(MARKUP), "markup in the name of a device is shown as text");
  for (const tab of [page, other]) {
    check((await tab.locator("img[src=x]").count()) === 0, "no element comes from markup");
    check((await tab.title()) !== "injected", "no script comes from markup");
  }
  await press(page, `Sign out ${MARKUP}`);
  check((await page.locator(".rows li").count()) === 1, "the device is gone");
  await open(other, "/account");
  check(other.url().startsWith(`${product}/sign-in`), "the other device is signed out");
  await other.context().close();
}

async function checkFailedRenewal(page, browser) {
  await open(page, "/sandbox");
  await look(page, "sandbox");
  await press(page, "Decline my card");
  await press(page, "A month later");
  await waitForSentence(page, /^The last payment for Pro failed\. You still have access/);
  const isListed = async (status) => (await open(page, "/account")) && (await page.locator("td").allInnerTexts()).includes(status);
  await waitFor(() => isListed("Failed"), "the failed payment is listed");
  await look(page, "account-past-due");
  await checkFeature(page, true, "while the payment is late");
  await open(page, "/account");
  await press(page, "Update my card");
  check(page.url().startsWith(`${stripe}/p/session/`), `the card is changed at the payment provider: ${page.url()}`);
  await look(page, "portal");
  await press(page, "Use a new card");
  await waitForSentence(page, /^You have Pro\. The next payment/);
  await waitFor(async () => !(await isListed("Failed")), "the payment is no longer failed");
  const phone = await openTab(browser, { userAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/605.1" });
  await open(phone, "/sign-in");
  await signIn(phone, EMAIL);
  await open(page, "/account");
  check((await page.locator(".rows li").count()) === 2, "both devices are listed");
  await look(page, "account-recovered");
  await photograph(page, 1010);
  await press(page, "Sign out all other devices");
  check((await page.locator(".rows li").count()) === 1, "only this device is left");
  await phone.context().close();
}

async function checkCancellation(page) {
  const [subscription] = (await server("GET", "/subscriptions")).data;
  const atStripe = async () => (await fetch(`${stripe}/_control/objects/${subscription.external_subscription_id}`)).json();
  const cancel = async () => {
    await open(page, "/account");
    await pressCancel(page);
    await press(page, "Cancel my plan");
  };
  await open(page, "/account");
  await pressCancel(page);
  check(/^You keep your access until /.test(await text(page, ".lead")), "the page says when the access ends");
  await look(page, "cancel");
  // Another change in the meantime.
  await server("PUT", `/subscriptions/${subscription.id}`, { metadata: { note: "changed" } });
  await press(page, "Cancel my plan");
  check((await text(page, ".notice")).startsWith("Your subscription has changed"), "an outdated page cancels nothing");
  check(/^You have Pro\./.test(await text(page, ".sentence")), "an outdated page changes nothing");

  await cancel();
  check(/^You have cancelled Pro\. You have access until /.test(await text(page, ".sentence")), "the cancellation is shown");
  await look(page, "account-cancelled");
  await checkFeature(page, true, "until the end of the period");
  await waitFor(async () => (await atStripe()).cancel_at_period_end === true, "the cancellation reaches the payment provider");
  await open(page, "/account");
  await press(page, "Keep my plan");
  check(/^You have Pro\. /.test(await text(page, ".sentence")), `undone: ${await text(page, ".sentence")}`);
  await waitForSentence(page, /^You have Pro\. The next payment of \$14 is on /);
  await waitFor(async () => (await atStripe()).cancel_at_period_end === false, "the undoing reaches the payment provider");

  await cancel();
  await waitFor(async () => (await atStripe()).cancel_at_period_end === true, "the second cancellation reaches the payment provider");
  await open(page, "/sandbox");
  await press(page, "A month later");
  await waitForSentence(page, /^Your Pro plan ended on .*\. Choose a plan to continue\.$/);
  await look(page, "account-ended");
  await waitFor(async () => (await open(page, "/check")) && (await page.locator(".locked").count()) === 3, "the report is locked at the end");
  await open(page, "/");
  check((await page.getByRole("button", { name: "Choose Pro", exact: true }).count()) === 1, "the plan can be bought again");
}

async function waitFor(condition, message) {
  const deadline = Date.now() + CHANGE_TIMEOUT;
  while (!(await condition())) {
    if (Date.now() > deadline) return check(false, message);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return check(true, message);
}

/** A user cannot cancel the subscription of another user. */
async function checkOtherUser(page, browser) {
  const other = await openTab(browser);
  await open(other, "/sign-in");
  await signIn(other, "grace@example.com");
  const [{ id, status }] = (await server("GET", "/subscriptions")).data;
  const [{ name, value }] = await other.context().cookies();
  const form = { method: "POST", redirect: "manual", headers: { cookie: `${name}=${value}` }, body: new URLSearchParams({ id, etag: "*" }) };
  const response = await fetch(`${product}/account/cancel`, form);
  check(response.status === 404, `the subscription of another user is not found: ${response.status}`);
  check((await server("GET", `/subscriptions/${id}`)).status === status, "the subscription of another user is unchanged");
  await other.context().close();
}

async function checkSignOut(page) {
  const [cookie] = await page.context().cookies();
  check(cookie.httpOnly && cookie.sameSite === "Lax", "scripts cannot read the session cookie");
  await press(page, "Sign out");
  check((await page.context().cookies()).length === 0, "the session cookie is removed");
  const headers = { cookie: `${cookie.name}=${cookie.value}` };
  const replayed = await fetch(`${product}/account`, { headers, redirect: "manual" });
  check(replayed.headers.get("location")?.startsWith("/sign-in"), `a copy of the cookie is useless: ${replayed.status}`);
  const foreign = await fetch(`${product}/sign-out`, { method: "POST", headers: { "sec-fetch-site": "cross-site" } });
  check(foreign.status === 403, `a form of another site is refused: ${foreign.status}`);
  const forged = await fetch(`${product}/webhooks`, { method: "POST", body: "{}" });
  check(forged.status === 401, `an unsigned webhook is refused: ${forged.status}`);
  check((await fetch(`${product}//`)).status === 400, "a target that is no path is refused");
  const policy = (await fetch(product)).headers.get("content-security-policy");
  check(policy.startsWith("default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' "), `the policy is ${policy}`);
}

mkdirSync(pictures, { recursive: true });
const browser = await launch();
try {
  const page = await openTab(browser);
  for (const part of [checkVisitor, checkSignUp, checkPurchase, checkMarkup, checkOtherUser, checkFailedRenewal, checkCancellation, checkSignOut]) {
    console.log(`  ${part.name}`);
    await part(page, browser);
  }
} finally {
  await browser.close();
}
finish("product", `pictures in ${pictures}`);
