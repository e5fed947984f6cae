// Checks examples/single-page-app in Chromium, from another origin than the sandbox's. tools/browser starts both.
//
//   node single-page-app.mjs PICTURES [--quick] < settings
//
// The settings are JSON: the URLs of the app and of the sandbox, the key of a secret client, the identity provider's token of a
// user, and the user's email address. The user has one subscription.

import { mkdirSync, readFileSync } from "node:fs";
import { check, finish, inspect as inspectPage, launch, watch } from "./harness.mjs";

const [pictures, ...flags] = process.argv.slice(2);
const quick = flags.includes("--quick");
const { app, sandbox, clientId, email, token } = JSON.parse(readFileSync(0, "utf8"));

const LOOKS = [[390, "light"], [1440, "dark"], ...(quick ? [] : [[390, "dark"], [1440, "light"]])];
const ROUNDS = quick ? 2 : 4;

/** Sends a request as the product's server. */
async function server(method, path, body) {
  const headers = { "client-id": clientId, "content-type": "application/json" };
  const response = await fetch(sandbox + path, { method, headers, body: body && JSON.stringify(body) });
  return response.json();
}

const storedStatus = async () => (await server("GET", "/subscriptions")).data[0].status;

/** Opens the app in a new tab that reports requests to other hosts and errors of scripts. */
async function openTab(context) {
  const page = await context.newPage();
  watch(page, [app, sandbox]);
  await page.goto(app);
  await ready(page);
  return page;
}

const ready = (page) => page.waitForSelector("body[data-ready]");
const cancelButton = (page) => page.locator("article").getByRole("button", { name: "Cancel subscription" });
const undoButton = (page) => page.getByRole("button", { name: "Keep my subscription" });
const status = (page) => page.locator("[data-part=status]").textContent();

async function signIn(page) {
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await cancelButton(page).waitFor();
}

/** Runs axe, checks that nothing is wider than the page, and takes a picture, at each width, in light and dark. */
async function inspect(page, name) {
  for (const [width, colorScheme] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 700 });
    await inspectPage(page, `${name}, ${width} px, ${colorScheme}`);
    await page.screenshot({ path: `${pictures}/app-${name}-${width}-${colorScheme}.png` });
  }
}

async function checkCancelAndUndo(page) {
  await inspect(page, "sign-in");
  await signIn(page);
  check((await page.locator("#email").textContent()) === email, "the page shows the user");
  check((await page.locator("h2").first().textContent()) === "Pro <b>plan</b>", "markup in a name is shown as text");
  check((await status(page)) === "Active", "the subscription is active");
  await inspect(page, "active");

  await cancelButton(page).click();
  await inspect(page, "confirm");
  await page.keyboard.press("Escape");
  check((await storedStatus()) === "active", "Escape does not cancel");
  await cancelButton(page).click();
  await page.locator("dialog").getByRole("button", { name: "Cancel subscription" }).click();
  await undoButton(page).waitFor();
  check((await storedStatus()) === "cancelled", "the service has cancelled it");
  check((await page.locator("[data-part=next]").textContent()).startsWith("You have access until "), "the end is shown");
  await inspect(page, "cancelled");

  // A change in between is noticed by its entity tag.
  const [{ id }] = (await server("GET", "/subscriptions")).data;
  await server("PUT", `/subscriptions/${id}`, { metadata: { note: "changed" } });
  await undoButton(page).click();
  await page.getByText("has changed meanwhile").waitFor();
  check((await storedStatus()) === "cancelled", "an outdated page changes nothing");
  await undoButton(page).click();
  await cancelButton(page).waitFor();
  check((await storedStatus()) === "active", "the service has undone it");
}

/** Tabs that refresh at the same time stay signed in with one session. */
async function checkTabs(context, name) {
  const tabs = [await openTab(context), await openTab(context)];
  if (await tabs[0].locator("#sign-in").isVisible()) {
    await signIn(tabs[0]);
    await cancelButton(tabs[1]).waitFor();
  }
  let refreshed = 0;
  const countRefresh = (response) => {
    const isRefresh = response.url().endsWith("/refresh-token") && response.request().method() === "POST";
    check(!isRefresh || response.ok(), `${name}: a refresh is refused with ${response.status()}`);
    refreshed += isRefresh;
  };
  for (const tab of tabs) tab.on("response", countRefresh);
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(tabs.map((tab) => tab.reload().then(() => ready(tab))));
    // As if the access token of both tabs had expired at the same moment.
    const results = await Promise.all(tabs.map((tab) => tab.evaluate(async () => {
      const { call } = await import("/session.js");
      const { fetch } = window;
      window.fetch = (url, options) => {
        window.fetch = fetch;
        return fetch(url, { ...options, headers: { ...options.headers, authorization: "Bearer expired" } });
      };
      return (await call("GET", "/authentication/tokens")).json.data.length;
    })));
    check(results.every((sessions) => sessions === 1), `${name}, round ${round}: ${results} sessions`);
  }
  for (const tab of tabs) tab.off("response", countRefresh);
  check(refreshed >= 2 * ROUNDS, `${name}: only ${refreshed} refreshes`);
  for (const tab of tabs) check((await status(tab)) === "Active", `${name}: a tab lost the session`);
  return tabs;
}

async function checkSignOut([first, second]) {
  const accessToken = first.waitForRequest((request) => request.url().endsWith("/tokens/logout"));
  await first.getByRole("button", { name: "Sign out" }).click();
  for (const tab of [first, second]) await tab.getByRole("button", { name: "Sign in" }).waitFor();
  check((await second.locator("article").count()) === 0, "nothing of the user remains on the page");
  const left = await second.evaluate(() => Object.keys(localStorage));
  check(left.length === 0, `localStorage keeps ${left}`);
  const { authorization, "client-id": key } = await (await accessToken).allHeaders();
  const path = `${sandbox}/authentication/user-logged-in`;
  const refused = await fetch(path, { method: "POST", headers: { authorization, "client-id": key } });
  check(refused.status === 401, `the access token is refused after the sign-out: ${refused.status}`);
}

/** A session that is revoked elsewhere ends with the next request. */
async function checkRevocation(page) {
  await signIn(page);
  await page.evaluate(async () => {
    const { call } = await import("/session.js");
    await call("POST", "/authentication/tokens/revoke-all");
  });
  await cancelButton(page).click();
  await page.locator("dialog").getByRole("button", { name: "Cancel subscription" }).click();
  await page.getByText("You have been signed out.").waitFor();
  check(await page.locator("#sign-in").isVisible(), "a revoked session shows the sign-in form");
  check((await storedStatus()) === "active", "a revoked session changes nothing");
}

mkdirSync(pictures, { recursive: true });
const browser = await launch();
try {
  const context = await browser.newContext();
  context.setDefaultTimeout(20_000);
  console.log("single-page app");
  const page = await openTab(context);
  await checkCancelAndUndo(page);
  await page.close();
  await checkSignOut(await checkTabs(context, "with locks"));
  await context.close();
  // Old browsers have no locks. Then the tabs send the same refresh token, and get the same new one.
  const withoutLocks = await browser.newContext();
  withoutLocks.setDefaultTimeout(20_000);
  await withoutLocks.addInitScript(() => Object.defineProperty(Navigator.prototype, "locks", { value: undefined }));
  const [first] = await checkTabs(withoutLocks, "without locks");
  await first.getByRole("button", { name: "Sign out" }).click();
  await first.getByRole("button", { name: "Sign in" }).waitFor();
  await checkRevocation(first);
} finally {
  await browser.close();
}
finish("single-page app", `pictures in ${pictures}`);
