// The console with demo data: signing in, opening pages, and the API with the session of a page.
import { openPage, settings, url } from '../harness.mjs';

/** Time for a screen to load its data. */
const LOAD_TIMEOUT = 30_000;

/** Opens the console, signed in with a role by its link. */
export async function openConsole(page, role = 'admin') {
  await page.goto(settings.links[role]);
  await page.getByRole('navigation', { name: 'Screens' }).waitFor({ timeout: LOAD_TIMEOUT });
}

/** Signs in, and returns a session: the browser, and the cookies for its contexts. */
export async function signIn(browser, role) {
  const page = await browser.newPage();
  await openConsole(page, role);
  const storageState = await page.context().storageState();
  await page.context().close();
  return { browser, storageState };
}

/** Opens an empty page with a session. */
export const openTab = ({ browser, storageState }, options) => openPage(browser, [`${url}/`], { storageState, ...options });

/** Opens the overview with a session. */
export async function openOverview(session, options) {
  const page = await openTab(session, options);
  await page.goto(`${url}/console/`);
  await loaded(page);
  return page;
}

/** Waits until a screen shows its data. */
export async function loaded(page) {
  await page.waitForFunction(
    () => document.querySelector('main h1') && !document.querySelector('main [aria-busy=true], main .skeleton, main .chart-empty'),
    null,
    { timeout: LOAD_TIMEOUT },
  );
}

/** Waits until requests have ended. The live events never do, so that it waits at most a second. */
export const settled = (page) => page.waitForLoadState('networkidle', { timeout: 1_000 }).catch(() => undefined);

/** Reads an endpoint of the API. */
export const read = (page, path) => page.evaluate(async (target) => (await fetch(target)).json(), path);

/** Sends a request that changes something, and returns the response's body. */
export const change = (page, method, path, body) =>
  page.evaluate(
    async ([verb, target, payload]) => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(target, { method: verb, ...(payload && { headers, body: JSON.stringify(payload) }) });
      const text = await response.text();
      if (!response.ok) throw new Error(`${verb} ${target}: ${text}`);
      return text && JSON.parse(text);
    },
    [method, path, body],
  );
