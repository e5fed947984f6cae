// Audits screens of the console with Lighthouse as a desktop browser.
//
// Other load on the machine lowers the score of performance, so a screen has three attempts.
import lighthouse, { desktopConfig } from 'lighthouse';
import { chromium } from 'playwright-core';
import { openConsole, read } from './console/session.mjs';
import { check, DESKTOP, drive, settings, url } from './harness.mjs';

const { port } = settings;
const CATEGORIES = ['performance', 'accessibility', 'best-practices'];
/** The metrics that make up the score of performance. */
const METRICS = {
  FCP: 'first-contentful-paint',
  LCP: 'largest-contentful-paint',
  TBT: 'total-blocking-time',
  CLS: 'cumulative-layout-shift',
  SI: 'speed-index',
};
const MIN_SCORE = 95;
const MAX_ATTEMPTS = 3;

/** Audits a screen in the signed-in browser. Returns the scores from 0 to 100, and the audits that lower them. */
async function audit(path) {
  const flags = { port, onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: 'error' };
  const { lhr } = await lighthouse(url + path, flags, desktopConfig);
  if (lhr.finalDisplayedUrl !== url + path) throw new Error(`${path} led to ${lhr.finalDisplayedUrl}`);
  const scores = CATEGORIES.map((id) => Math.round(lhr.categories[id].score * 100));
  const metrics = Object.entries(METRICS).map(([name, id]) => `${name} ${lhr.audits[id].displayValue}`);
  console.log(`  ${path}: ${CATEGORIES.map((id, index) => `${id} ${scores[index]}`).join(', ')}; ${metrics.join(', ')}`);
  const refs = CATEGORIES.flatMap((id) => lhr.categories[id].auditRefs).filter(({ weight }) => weight > 0);
  const weak = refs.map(({ id }) => lhr.audits[id]).filter(({ score }) => score !== null && score < 0.9);
  return { scores, weak: weak.map(({ id, displayValue = '' }) => `${id} ${displayValue}`.trim()) };
}

async function checkScores(page) {
  const { data } = await read(page, '/users?limit=1');
  // Its live events would disturb the measurement.
  await page.goto('about:blank');
  for (const screen of ['/', '/subscriptions', '/revenue', `/subscribers/${data[0].id}`]) {
    const path = `/console${screen}`;
    let result = await audit(path);
    for (let attempt = 2; attempt <= MAX_ATTEMPTS && Math.min(...result.scores) < MIN_SCORE; attempt += 1) result = await audit(path);
    CATEGORIES.forEach((id, index) => {
      check(result.scores[index] >= MIN_SCORE, `${path}: ${id} is below ${MIN_SCORE}: ${result.weak.join('; ')}`);
    });
  }
}

/** Signs in with the context of the browser in which Lighthouse opens its pages. */
async function open() {
  const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
  const page = await browser.contexts()[0].newPage();
  // Narrower windows have no navigation.
  await page.setViewportSize(DESKTOP);
  await openConsole(page);
  return page;
}

await drive([checkScores], open, [`--remote-debugging-port=${port}`]);
