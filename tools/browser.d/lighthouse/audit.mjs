// Audits screens of the console with Lighthouse as a desktop browser. `tools/browser --only lighthouse` starts it.
//
//   node audit.mjs URL LINK
//
// Other load on the machine lowers the score of performance, so a screen has three attempts.

import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import lighthouse, { desktopConfig } from "lighthouse";
import { chromium } from "playwright-core";

const [base, link] = process.argv.slice(2);
const SCREENS = ["/", "/subscriptions", "/revenue"];
const CATEGORIES = ["performance", "accessibility", "best-practices"];
/** The metrics that make up the score of performance. */
const METRICS = {
  FCP: "first-contentful-paint",
  LCP: "largest-contentful-paint",
  TBT: "total-blocking-time",
  CLS: "cumulative-layout-shift",
  SI: "speed-index",
};
const MIN_SCORE = 95;
const MAX_ATTEMPTS = 3;

/** Returns a port that nothing listens on. */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Audits a screen in the signed-in browser. Returns the scores from 0 to 100, the metrics, and the audits that lower them. */
async function audit(url, port) {
  const flags = { port, onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: "error" };
  const { lhr } = await lighthouse(url, flags, desktopConfig);
  if (lhr.finalDisplayedUrl !== url) throw new Error(`${url} led to ${lhr.finalDisplayedUrl}`);
  const scores = CATEGORIES.map((id) => Math.round(lhr.categories[id].score * 100));
  const refs = CATEGORIES.flatMap((id) => lhr.categories[id].auditRefs).filter(({ weight }) => weight > 0);
  const weak = refs.map(({ id }) => lhr.audits[id]).filter(({ score }) => score !== null && score < 0.9);
  const metrics = Object.entries(METRICS).map(([name, id]) => `${name} ${lhr.audits[id].displayValue}`);
  return { scores, metrics: metrics.join(", "), weak: weak.map(({ id, displayValue }) => `${id} ${displayValue ?? ""}`.trim()) };
}

const profile = mkdtempSync(join(tmpdir(), "perennial-lighthouse-"));
const port = await freePort();
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", `--remote-debugging-port=${port}`],
});
let failures = 0;
try {
  const page = await context.newPage();
  await page.goto(link);
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  const { data } = await page.evaluate(async () => (await fetch("/users?limit=1")).json());
  for (const path of [...SCREENS, `/subscribers/${data[0].id}`]) {
    let result;
    let attempts = 0;
    do {
      result = await audit(`${base}/console${path}`, port);
      attempts += 1;
      console.log(`  ${path}, attempt ${attempts}: performance ${result.scores[0]}; ${result.metrics}`);
    } while (Math.min(...result.scores) < MIN_SCORE && attempts < MAX_ATTEMPTS);
    const isGood = Math.min(...result.scores) >= MIN_SCORE;
    failures += isGood ? 0 : 1;
    const scores = CATEGORIES.map((id, index) => `${id} ${result.scores[index]}`).join(", ");
    console.log(`${isGood ? "ok" : "FAILED"} ${path}: ${scores} (attempt ${attempts})`);
    if (!isGood) console.log(`  ${result.weak.join("; ")}`);
  }
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(`lighthouse: ${failures} screens below ${MIN_SCORE}`);
process.exitCode = failures ? 1 : 0;
