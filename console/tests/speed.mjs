// Measures how soon the overview shows its data, and how soon the search finds a user by the start of an email address.
//
// Each visit has an empty cache. A search is measured from the last key to the first result.
import { loaded, openPage, options, start } from './browser.mjs';

const VISITS = 10;
const SEARCHES = 20;
/** In ms. */
const MAX_OVERVIEW = 1_000;
const MAX_SEARCH = 200;

const session = await start();
const visits = [];
for (let number = 0; number < VISITS; number += 1) {
  const { context, page } = await openPage(session, { viewport: { width: 1440, height: 900 } });
  await page.goto(`${options.url}/console/`, { waitUntil: 'commit' });
  await loaded(page);
  visits.push(await page.evaluate(interactive));
  await context.close();
}

const { page } = await openPage(session, { viewport: { width: 1440, height: 900 } });
await page.goto(`${options.url}/console/`);
await loaded(page);
const searches = [];
for (let number = 1; number <= SEARCHES; number += 1) {
  // One prefix that one user has, and one that many have.
  const prefix = number % 2 ? `${number * 40_000}@exam` : `${number}`;
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').waitFor();
  await page.keyboard.insertText(prefix.slice(0, -1));
  await page.waitForTimeout(500);
  await page.evaluate(watchResults, prefix);
  await page.keyboard.press(prefix.at(-1));
  searches.push(await page.evaluate(() => window.searchTime));
  await page.keyboard.press('Escape');
  await page.getByRole('combobox').waitFor({ state: 'detached' });
}
await session.browser.close();

const isFast = [
  print('overview, from an empty cache until it shows its data', visits, MAX_OVERVIEW),
  print('search by the start of an email address', searches, MAX_SEARCH),
].every(Boolean);
process.exitCode = isFast ? 0 : 1;

/** Returns when the page responds to input, in ms since the visit began. */
function interactive() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  });
}

/** Starts to measure the time from the next key until a result has this prefix, as `window.searchTime`. */
function watchResults(prefix) {
  window.searchTime = new Promise((resolve) => {
    document.addEventListener(
      'keydown',
      (event) => {
        const check = () => {
          const results = [...document.querySelectorAll('[role=option]')];
          if (results.some((result) => result.textContent.startsWith(prefix))) {
            resolve(performance.now() - event.timeStamp);
          } else requestAnimationFrame(check);
        };
        requestAnimationFrame(check);
      },
      { once: true, capture: true },
    );
  });
}

/** Prints the median and the maximum. Returns whether the median is below the limit. */
function print(label, times, limit) {
  const sorted = times.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  console.log(
    `  ${label}: ${Math.round(median)} ms (median of ${sorted.length}), ${Math.round(sorted.at(-1))} ms at most; limit ${limit} ms`,
  );
  return median < limit;
}
