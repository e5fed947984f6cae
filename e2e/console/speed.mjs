// Measures how soon the overview shows its data, and how soon the search finds a user by the start of an email address.
//
// Each visit has an empty cache. A search is measured from the last key to the first result.
import { check, drive, url } from '../harness.mjs';
import { loaded, openOverview, openTab, signIn } from './session.mjs';

const VISITS = 10;
const SEARCHES = 20;
/** In ms. */
const MAX_OVERVIEW = 1_000;
const MAX_SEARCH = 200;

async function checkOverview(session) {
  const times = [];
  for (let visit = 0; visit < VISITS; visit += 1) {
    const page = await openTab(session);
    await page.goto(`${url}/console/`, { waitUntil: 'commit' });
    await loaded(page);
    times.push(await page.evaluate(interactive));
    await page.context().close();
  }
  checkMedian('overview, from an empty cache until it shows its data', times, MAX_OVERVIEW);
}

async function checkSearch(session) {
  const page = await openOverview(session);
  const times = [];
  for (let number = 1; number <= SEARCHES; number += 1) {
    // One prefix that one user has, and one that many have.
    const prefix = number % 2 ? `${number * 40_000}@exam` : `${number}`;
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').waitFor();
    await page.keyboard.insertText(prefix.slice(0, -1));
    await page.waitForTimeout(500);
    await page.evaluate(watchResults, prefix);
    await page.keyboard.press(prefix.at(-1));
    times.push(await page.evaluate(() => window.searchTime));
    await page.keyboard.press('Escape');
    await page.getByRole('combobox').waitFor({ state: 'detached' });
  }
  checkMedian('search by the start of an email address', times, MAX_SEARCH);
}

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
        const look = () => {
          const results = [...document.querySelectorAll('[role=option]')];
          if (results.some((result) => result.textContent.startsWith(prefix))) {
            resolve(performance.now() - event.timeStamp);
          } else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      },
      { once: true, capture: true },
    );
  });
}

/** Prints the median and the maximum, and checks the median. */
function checkMedian(label, times, limit) {
  const sorted = times.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const text = `${label}: ${Math.round(median)} ms (median of ${sorted.length}), ${Math.round(sorted.at(-1))} ms at most; limit ${limit} ms`;
  console.log(`  ${text}`);
  check(median < limit, text);
}

await drive([checkOverview, checkSearch], signIn);
