// Checks the documentation and the API explorer of a sandbox.
import { check, drive, inspect, openPage, photograph, quick, url } from './harness.mjs';

const QUICK_PAGES = '/ /docs/ /docs/explanation/modes /docs/errors/unknown_value';
const MORE_PAGES = `/docs/contents /docs/errors /docs/tutorial/quickstart /docs/how-to/sessions-and-tokens /docs/explanation/lifecycle
  /docs/reference/commands /docs/decisions/0007-dependencies /docs/nope`;
const PAGES = (quick ? QUICK_PAGES : `${QUICK_PAGES} ${MORE_PAGES}`).split(/\s+/);
const WIDTHS = [390, 820, 1440];

const open = (browser, options) =>
  openPage(browser, [`${url}/`], { mayFail: true, permissions: ['clipboard-read', 'clipboard-write'], ...options });
const sendButton = (page) => page.getByRole('button', { name: 'Send', exact: true });
const statusOf = (page) => page.locator('#operation .status').textContent();

/** Sends the request of the explorer's form and returns the status that the page shows. */
async function send(page, operation) {
  if (operation) await page.goto(`${url}/docs/#${operation}`);
  const sent = page.waitForRequest((request) => request.resourceType() === 'fetch');
  await sendButton(page).click();
  const headers = await (await sent).allHeaders();
  check(!('idempotency-key' in headers), `${operation}: the explorer sends a sample Idempotency-Key`);
  return statusOf(page);
}

async function checkExplorer(browser) {
  const page = await open(browser);
  await page.goto(`${url}/docs/`);
  const first = await send(page);
  check(first.startsWith('200 '), `the explorer's first request: ${first}`);
  // Each uses the ids of the records before it.
  for (const operation of ['createPlan', 'createUser', 'createSubscription', 'createPayment']) {
    const status = await send(page, operation);
    check(status.startsWith('201 '), `${operation} with the document's example: ${status}`);
  }
  const list = await send(page, 'readSubscription');
  check(list.startsWith('200 '), `readSubscription with a known id: ${list}`);
  check(/"price": \d+\.\d\d\b/.test(await page.locator('#operation pre').first().textContent()), 'amounts keep their decimals');
  await page.goto(`${url}/docs/#readPlan`);
  await page.getByLabel('slug').fill('no-such-plan');
  check((await send(page)).startsWith('404 '), 'readPlan of an unknown plan is 404');
  await page.getByRole('link', { name: 'plan_not_found' }).click();
  await page.waitForURL('**/docs/errors/plan_not_found');
  await page.context().close();
}

async function checkKeyboard(browser) {
  const page = await open(browser);
  await page.goto(`${url}/docs/`);
  await sendButton(page).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  for (let presses = 0; presses < 10 && (await focused()) !== 'Send'; presses += 1) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const status = await statusOf(page);
  check(status.startsWith('200 '), `the first request by keyboard: ${status}`);
  await page.context().close();
}

async function checkNavigation(browser) {
  const page = await open(browser, { viewport: { width: 820, height: 1000 } });
  const result = page.locator('#results a').first();
  await page.goto(`${url}/`);
  await page.getByRole('link', { name: 'Documentation' }).click();
  await page.waitForURL('**/docs/contents');
  await page.keyboard.press('/');
  await page.keyboard.type('advance the clock');
  await result.waitFor();
  await page.keyboard.press('ArrowDown');
  await photograph(page, 'search');
  await inspect(page, 'search results');
  await page.keyboard.press('Escape');
  check(await page.locator('#results').isHidden(), 'Escape closes the results');
  await page.fill('#search', 'slug_taken');
  await result.waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL('**/docs/errors/slug_taken');
  await page.goto(`${url}/docs/tutorial/quickstart`);
  await page.getByRole('button', { name: 'Copy' }).first().click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check(copied.startsWith('eval "$(perennial dev --background)"'), `copied ${copied}`);
  await page.getByRole('button', { name: 'Menu' }).click();
  await photograph(page, 'menu');
  await inspect(page, 'menu');
  await page.locator('#sidebar').getByRole('link', { name: 'Limits' }).click();
  await page.waitForURL('**/docs/reference/limits');
  await page.locator('a[rel=next]').click();
  await page.waitForURL('**/docs/reference/malformed-input');
  await page.context().close();
}

async function checkPages(browser) {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of WIDTHS) {
      const page = await open(browser, { colorScheme, viewport: { width, height: 1000 } });
      for (const path of PAGES) {
        const name = `${path.replaceAll('/', '_')}-${width}-${colorScheme}`;
        await page.goto(url + path, { waitUntil: 'load' });
        if (path === '/docs/') {
          await send(page, 'createPlan');
          await page.evaluate(() => document.querySelectorAll('details').forEach((details) => details.setAttribute('open', '')));
        }
        await inspect(page, name);
        await page.evaluate(() => scrollTo(0, 0));
        await photograph(page, name, { fullPage: path === '/docs/' });
      }
      await page.context().close();
    }
  }
}

await drive([checkExplorer, checkKeyboard, checkNavigation, checkPages]);
