// Opens the exported documentation with Chromium. tools/site starts it.
//
//   node exported-site.mjs PICTURES PLACE…
//
// A place is the URL of the exported folder, with a slash at its end: on the disk or on a web server.

import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [pictures, ...places] = process.argv.slice(2);
const PAGES = ["index", "tutorial/quickstart", "console", "explanation/lifecycle", "errors", "errors/slug_taken", "reference/commands"];
const WIDTHS = [390, 1440];
const THEMES = ["light", "dark"];

const started = performance.now();
const failures = [];
let checks = 0;

function check(condition, message) {
  checks += 1;
  if (!condition) {
    failures.push(message);
    console.log(`  failed: ${message}`);
  }
}

/** Opens a tab that reports requests outside of a place, files that are missing, and errors of scripts. */
async function openTab(browser, place, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  const tab = await context.newPage();
  tab.on("request", (request) => check(request.url().startsWith(place), `${tab.url()} requests ${request.url()}`));
  tab.on("requestfailed", (request) => check(false, `${request.url()} is missing`));
  tab.on("response", (response) => check(response.status() < 400, `${response.url()}: ${response.status()}`));
  tab.on("pageerror", (error) => check(false, `${tab.url()}: ${error.message}`));
  tab.on("console", (message) => check(message.type() !== "error", `${tab.url()}: ${message.text()}`));
  return tab;
}

async function checkPages(browser, place, kind) {
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      const tab = await openTab(browser, place, { colorScheme: theme, viewport: { width, height: 1000 } });
      for (const page of PAGES) {
        const name = `${page.replaceAll("/", "_")}-${width}-${theme}`;
        await tab.goto(`${place}${page}.html`, { waitUntil: "load" });
        const { images, wide, styled } = await tab.evaluate(() => ({
          images: [...document.images].filter((image) => !image.complete || !image.naturalWidth).map((image) => image.src),
          wide: document.documentElement.scrollWidth > document.documentElement.clientWidth + 1,
          styled: getComputedStyle(document.querySelector("header")).display === "flex",
        }));
        check(images.length === 0, `${kind}: ${name} shows no ${images.join(", ")}`);
        check(!wide, `${kind}: ${name} is wider than the window`);
        check(styled, `${kind}: ${name} has no style`);
        if (kind === "disk") await tab.screenshot({ path: `${pictures}/${name}.png` });
      }
      await tab.context().close();
    }
  }
}

/** Searches on a page in a folder, follows the result, and returns to the contents. */
async function checkSearch(browser, place) {
  const tab = await openTab(browser, place);
  await tab.goto(`${place}tutorial/quickstart.html`);
  await tab.fill("#search", "slug_taken");
  await tab.locator("#results a").first().waitFor();
  await tab.locator("#search").press("Enter");
  await tab.waitForURL(`${place}errors/slug_taken.html`);
  await tab.locator(".brand").click();
  await tab.waitForURL(`${place}index.html`);
  await tab.locator("main a").first().click();
  await tab.waitForURL(/\.html/);
  await tab.context().close();
}

mkdirSync(pictures, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium" });
try {
  for (const place of places) {
    await checkPages(browser, place, place.startsWith("file:") ? "disk" : "server");
    await checkSearch(browser, place);
  }
} finally {
  await browser.close();
}
const seconds = Math.round((performance.now() - started) / 1000);
console.log(`${checks} checks, ${failures.length} failed; ${PAGES.length} pages, ${places.length} places; ${seconds} s; pictures in ${pictures}`);
process.exit(failures.length ? 1 : 0);
