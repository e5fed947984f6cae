// Checks the documentation and the API explorer of a running sandbox with Chromium. tools/browser starts it.
//
//   node check.mjs URL PICTURES [--quick]

import { mkdirSync } from "node:fs";
import { check, finish, inspect, launch, watch } from "./harness.mjs";

const [base, pictures, ...flags] = process.argv.slice(2);
const quick = flags.includes("--quick");

const PAGES = [
  "/", "/docs/", "/docs/contents", "/docs/explanation/modes", "/docs/errors", "/docs/errors/unknown_value",
  "/docs/tutorial/quickstart", "/docs/how-to/sessions-and-tokens", "/docs/explanation/lifecycle",
  "/docs/reference/commands", "/docs/decisions/0007-dependencies", "/docs/nope",
];
const QUICK_PAGES = ["/", "/docs/", "/docs/explanation/modes", "/docs/errors/unknown_value"];
const WIDTHS = [390, 820, 1440];
const THEMES = ["light", "dark"];

/** Opens a page that reports requests to other hosts, violations of its security policy and errors of scripts. */
async function openPage(browser, options = {}) {
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"], ...options });
  const page = await context.newPage();
  watch(page, [base]);
  return page;
}

/** Sends the request of the explorer's form and returns the status that the page shows. */
async function send(page, operation) {
  if (operation) await page.goto(`${base}/docs/#${operation}`);
  const sent = page.waitForRequest((request) => request.resourceType() === "fetch");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  const headers = await (await sent).allHeaders();
  check(!("idempotency-key" in headers), `${operation}: the explorer sends a sample Idempotency-Key`);
  return page.locator("#operation .status").textContent();
}

async function checkExplorer(browser) {
  const page = await openPage(browser);
  await page.goto(`${base}/docs/`);
  const status = await send(page);
  check(status.startsWith("200 "), `the explorer's first request: ${status}`);
  // Each uses the ids of the records before it.
  for (const operation of ["createPlan", "createUser", "createSubscription", "createPayment"]) {
    const status = await send(page, operation);
    check(status.startsWith("201 "), `${operation} with the document's example: ${status}`);
  }
  const list = await send(page, "readSubscription");
  check(list.startsWith("200 "), `readSubscription with a known id: ${list}`);
  check(/"price": \d+\.\d\d\b/.test(await page.locator("#operation pre").first().textContent()), "amounts keep their decimals");
  await page.goto(`${base}/docs/#readPlan`);
  await page.getByLabel("slug").fill("no-such-plan");
  check((await send(page)).startsWith("404 "), "readPlan of an unknown plan is 404");
  await page.getByRole("link", { name: "plan_not_found" }).click();
  await page.waitForURL("**/docs/errors/plan_not_found");
  await page.context().close();
}

async function checkKeyboard(browser) {
  const page = await openPage(browser);
  await page.goto(`${base}/docs/`);
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  let presses = 0;
  while ((await focused()) !== "Send" && presses < 10) {
    await page.keyboard.press("Tab");
    presses += 1;
  }
  await page.keyboard.press("Enter");
  const status = await page.locator("#operation .status").textContent();
  check(status.startsWith("200 "), `the first request by keyboard: ${status}`);
  await page.context().close();
}

async function checkDocs(browser) {
  const page = await openPage(browser, { viewport: { width: 820, height: 1000 } });
  await page.goto(`${base}/`);
  await page.getByRole("link", { name: "Documentation" }).click();
  await page.waitForURL("**/docs/contents");
  await page.keyboard.press("/");
  await page.keyboard.type("advance the clock");
  await page.locator("#results a").first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.screenshot({ path: `${pictures}/search.png` });
  await inspect(page, "search results");
  await page.keyboard.press("Escape");
  check(await page.locator("#results").isHidden(), "Escape closes the results");
  await page.fill("#search", "slug_taken");
  await page.locator("#results a").first().waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs/errors/slug_taken");
  await page.goto(`${base}/docs/tutorial/quickstart`);
  await page.getByRole("button", { name: "Copy" }).first().click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check(copied.startsWith('eval "$(perennial dev --background)"'), `copied ${copied}`);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.screenshot({ path: `${pictures}/menu.png` });
  await inspect(page, "menu");
  await page.locator("#sidebar").getByRole("link", { name: "Limits" }).click();
  await page.waitForURL("**/docs/reference/limits");
  await page.locator("a[rel=next]").click();
  await page.waitForURL("**/docs/reference/malformed-input");
  await page.context().close();
}

/** Checks each page at each width, in light and dark. */
async function checkPages(browser) {
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      const page = await openPage(browser, { colorScheme: theme, viewport: { width, height: 1000 } });
      for (const path of quick ? QUICK_PAGES : PAGES) {
        const name = `${path.replaceAll("/", "_")}-${width}-${theme}`;
        await page.goto(base + path, { waitUntil: "load" });
        if (path === "/docs/") {
          await send(page, "createPlan");
          await page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
        }
        await inspect(page, name);
        await page.evaluate(() => scrollTo(0, 0));
        await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: path === "/docs/" });
      }
      await page.context().close();
      console.log(`  ${width} px, ${theme}`);
    }
  }
}

mkdirSync(pictures, { recursive: true });
const browser = await launch();
try {
  for (const part of [checkExplorer, checkKeyboard, checkDocs, checkPages]) {
    console.log(part.name);
    await part(browser);
  }
} finally {
  await browser.close();
}
const pages = (quick ? QUICK_PAGES : PAGES).length;
finish("documentation", `${pages} pages, ${WIDTHS.length} widths, light and dark; pictures in ${pictures}`);
