// What all browser tests share: their settings, counted checks, pages that report what they must not do, axe, and pictures.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

/** What `browse` in harness.py passes: JSON. */
export const settings = JSON.parse(readFileSync(0, 'utf8'));
export const { url, quick, pictures, only = '' } = settings;
export const DESKTOP = { width: 1440, height: 900 };

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const LOOKS = [[390, 'light'], [1440, 'dark'], ...(quick ? [] : [[390, 'dark'], [1440, 'light']])]; // prettier-ignore
const DOCS_QUALITY = 82;

let checks = 0;
let failures = 0;

export function check(condition, message) {
  checks += 1;
  if (condition) return;
  failures += 1;
  console.log(`  failed: ${message}`);
}

/**
 * Calls each part, whose name starts with `check`, with what `open` returns for a new browser, which has these arguments. Prints the
 * checks and the time of each part, and ends the process. An error ends the test, because the next part continues where this one stopped.
 */
export async function drive(parts, open = (browser) => browser, args = []) {
  if (pictures) mkdirSync(pictures, { recursive: true });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
  try {
    const opened = await open(browser);
    for (const part of parts) {
      const [before, started] = [checks, performance.now()];
      await part(opened);
      const words = part.name.slice('check'.length).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
      console.log(`  ${words.trim()}: ${checks - before} checks, ${((performance.now() - started) / 1000).toFixed(1)} s`);
    }
  } catch (error) {
    check(false, error.stack);
  } finally {
    await browser.close();
  }
  console.log(`${settings.name}: ${checks} checks, ${failures} failed`);
  process.exit(failures ? 1 : 0);
}

/**
 * Reports requests to other places than these, which are starts of URLs, errors of scripts, and violations of the security policy; also
 * requests that fail, unless the page `mayFail`. Returns the page.
 */
export async function watch(page, places, { mayFail = false } = {}) {
  const allowed = ['data:', ...places, ...places.map((place) => `blob:${place}`)];
  page.on('request', (request) => {
    const isAllowed = allowed.some((start) => request.url().startsWith(start));
    check(isAllowed, `${page.url()} requests ${request.url()}`);
  });
  page.on('pageerror', (error) => check(false, `${page.url()}: ${error.message}`));
  page.on('console', (message) => {
    // Chromium reports requests that fail as errors too.
    const isExpected = mayFail && message.text().startsWith('Failed to load resource');
    check(message.type() !== 'error' || isExpected, `${page.url()}: ${message.text()}`);
  });
  if (!mayFail) {
    page.on('response', (response) => check(response.status() < 400, `${response.url()}: ${response.status()}`));
    // A page that is left aborts its requests.
    page.on('requestfailed', (request) => check(request.failure().errorText === 'net::ERR_ABORTED', `${request.url()} fails`));
  }
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      console.error(`Security policy: ${violatedDirective} ${blockedURI}`),
    );
  });
  return page;
}

/** Opens a page in a new context, and watches it. */
export async function openPage(browser, places, { mayFail, ...options } = {}) {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  return watch(await context.newPage(), places, { mayFail });
}

/** Runs axe on a part of the page, and checks the widths. */
export async function inspect(page, name, { part = 'html', boxes } = {}) {
  // Evaluated through the debugger, which a security policy does not restrict.
  await page.evaluate(AXE);
  const violations = await page.evaluate(
    async ([selector, values]) => {
      const found = await window.axe.run(selector, { runOnly: { type: 'tag', values }, resultTypes: ['violations'] });
      return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
    },
    [part, AXE_TAGS],
  );
  check(violations.length === 0, `${name}: axe finds ${violations.join('; ')}`);
  await checkWidths(page, name, boxes);
}

/** Checks that neither the page nor one of its boxes is wider than its place. */
export async function checkWidths(page, name, boxes = 'pre, textarea') {
  const wide = await page.evaluate((selector) => {
    const { documentElement } = document;
    // Widths of parts are rounded.
    const found = [...document.querySelectorAll(selector)].filter((box) => box.scrollWidth > box.clientWidth + 1);
    if (documentElement.scrollWidth > documentElement.clientWidth) found.push(documentElement);
    return found.map((box) => box.outerHTML.slice(0, 80));
  }, boxes);
  check(wide.length === 0, `${name}: wider than its place: ${wide.join('; ')}`);
}

/** Takes a picture for people to look at. `--quick` takes none. */
export async function photograph(page, name, options) {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, ...options });
}

/** Inspects and photographs the page at each width, in light and dark. */
export async function look(page, name) {
  for (const [width, colorScheme] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ ...DESKTOP, width });
    await inspect(page, `${name}, ${width} px, ${colorScheme}`);
    await photograph(page, `${name}-${width}-${colorScheme}`, { fullPage: true });
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(DESKTOP);
}

/** Writes a picture of the documentation in light and dark. `open` opens the page with these options. */
export async function illustrate(name, height, open) {
  for (const colorScheme of ['light', 'dark']) {
    const page = await open({ colorScheme, viewport: { width: 1280, height }, deviceScaleFactor: 1.5 });
    const protocol = await page.context().newCDPSession(page);
    const { data } = await protocol.send('Page.captureScreenshot', { format: 'webp', quality: DOCS_QUALITY });
    writeFileSync(`${settings.docs}/${name}-${colorScheme}.webp`, Buffer.from(data, 'base64'));
    await page.context().close();
  }
}

/** Waits until a condition holds, and checks that it does within a time in milliseconds. The message may be a function. */
export async function until(holds, message, timeout = 15_000) {
  const deadline = Date.now() + timeout;
  let isTrue = await holds();
  while (!isTrue && Date.now() < deadline) {
    await sleep(200);
    isTrue = await holds();
  }
  check(isTrue, typeof message === 'function' ? message() : message);
}

/** Sends a request to the service as the product's server. */
export async function server(method, path, body) {
  const headers = { 'client-id': settings.clientId, 'content-type': 'application/json' };
  const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  return response.json();
}
