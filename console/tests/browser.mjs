// Drives the console of a running service with Debian's Chromium.
//
// --url URL           where the service is, such as http://127.0.0.1:8080
// --link LINK         a sign-in link of an admin, from `perennial console link`
// --member ROLE=LINK  a sign-in link of another role; can be repeated
// --out DIR           where pictures are written; none by default
// --docs DIR          where the pictures of the documentation are written; none by default
// --quick             fewer widths and tasks
// --only TEXT         only screens, tasks or pictures whose name contains the text
import { mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

export const { values: options } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    link: { type: 'string' },
    member: { type: 'string', multiple: true, default: [] },
    out: { type: 'string' },
    docs: { type: 'string' },
    only: { type: 'string', default: '' },
    quick: { type: 'boolean', default: false },
  },
});

/** Time for a screen to load its data. */
const LOAD_TIMEOUT = 30_000;

/** Starts the browser and signs in once; the session is shared by all contexts. */
export async function start() {
  if (options.out) mkdirSync(options.out, { recursive: true });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  return { browser, storageState: await signIn(browser, options.link) };
}

/** Signs in with a link, and returns the cookies. */
export async function signIn(browser, link) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(link ?? `${options.url}/console/`);
  await page.getByRole('navigation', { name: 'Screens' }).waitFor({ timeout: LOAD_TIMEOUT });
  const storageState = await context.storageState();
  await context.close();
  return storageState;
}

/** Opens a page that records what must not happen: errors, CSP violations and requests elsewhere. */
export async function openPage({ browser, storageState }, settings) {
  const context = await browser.newContext({ storageState, ...settings });
  const page = await context.newPage();
  const findings = [];
  const origin = new URL(options.url).origin;
  page.on('pageerror', (error) => findings.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') findings.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !/^(data|blob):/.test(url)) {
      findings.push(`outside request: ${url}`);
    }
  });
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) =>
      console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  return { context, page, findings };
}

/** Waits until a screen shows its data. */
export async function loaded(page) {
  await page.waitForFunction(
    () =>
      document.querySelector('main h1') &&
      !document.querySelector('main [aria-busy=true], main .skeleton, main .chart-empty'),
    null,
    { timeout: LOAD_TIMEOUT },
  );
}

/** Waits until requests have ended. The live events never do, so that it waits at most a second. */
export const settled = (page) =>
  page.waitForLoadState('networkidle', { timeout: 1_000 }).catch(() => undefined);

/** Reads an endpoint of the API with the page's session. */
export const read = (page, path) => page.evaluate(async (url) => (await fetch(url)).json(), path);
