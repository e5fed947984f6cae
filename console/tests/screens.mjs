// Opens every screen as an admin in light and dark at three widths, and as the other roles: no finding of
// axe, no violation of the content security policy, no request elsewhere, no error, no horizontal overflow.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { loaded, openPage, options, signIn, start } from './browser.mjs';
import { pathOf, prepare, SCREENS } from './catalog.mjs';
import { startReceiver } from './operations.mjs';

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Pages that are checked at the same time. */
const CONCURRENCY = 2;

const started = performance.now();
const screens = SCREENS.filter(([name]) => name.includes(options.only));
const admin = await start();
const receiver = await startReceiver();
const records = await prepare(admin, receiver);
const totals = { checks: 0, findings: 0, skipped: 0 };
const pending = await passes();
await Promise.all(Array.from({ length: CONCURRENCY }, work));
await admin.browser.close();
receiver.close();
const seconds = Math.round((performance.now() - started) / 1000);
console.log(
  `screens: ${screens.length} screens, ${totals.checks} checks, ${totals.skipped} dialogs that a role cannot open, ${totals.findings} findings in ${seconds} s`,
);
process.exitCode = totals.findings ? 1 : 0;

/** Returns the combinations of role, theme and width to check. */
async function passes() {
  const all = [];
  const add = (role, session, theme, width) => all.push({ role, session, theme, width });
  if (options.quick) {
    add('admin', admin, 'light', 1440);
    add('admin', admin, 'dark', 390);
    return all;
  }
  for (const width of [1440, 820, 390]) {
    for (const theme of ['light', 'dark']) add('admin', admin, theme, width);
  }
  for (const member of options.member) {
    const [role, link] = member.split(/=(.*)/s);
    const session = { ...admin, storageState: await signIn(admin.browser, link) };
    add(role, session, 'light', 1440);
  }
  return all;
}

async function work() {
  for (let pass = pending.shift(); pass; pass = pending.shift()) await checkScreens(pass);
}

async function checkScreens({ role, session, theme, width }) {
  const settings = { colorScheme: theme, viewport: { width, height: 900 } };
  const { context, page, findings } = await openPage(session, settings);
  await page.goto(`${options.url}/console/`);
  await loaded(page);
  for (const [name, path, act] of screens) {
    findings.length = 0;
    const label = `${name}-${width}-${theme}${role === 'admin' ? '' : `-${role}`}`;
    try {
      await page.goto(`${options.url}/console${await pathOf(page, path, records)}`);
      await loaded(page);
      if (act && role !== 'admin' && !(await isAllowed(page, act))) {
        totals.skipped += 1;
        continue;
      }
      if (act) {
        await act(page);
        await page.getByRole('dialog').waitFor();
      }
      // The screen behind a dialog has a check of its own.
      await check(page, findings, act && options.quick ? '[role=dialog]' : 'html');
      if (options.out) {
        await page.screenshot({ path: `${options.out}/${label}.png`, fullPage: !act });
      }
    } catch (error) {
      findings.push(`failed: ${error.message}`);
    }
    for (const finding of findings) console.log(`${label}: ${finding}`);
    totals.checks += 1;
    totals.findings += findings.length;
  }
  await context.close();
  console.log(`screens: ${role}, ${theme}, ${width} px: checked`);
}

/** Returns whether a role can open a dialog: its control exists and is not disabled. */
async function isAllowed(page, { control }) {
  if (!control) return true;
  const found = control(page);
  return (await found.count()) > 0 && (await found.getAttribute('aria-disabled')) !== 'true';
}

async function check(page, findings, part) {
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (overflow > 0) findings.push(`overflows by ${overflow} px`);
  await page.evaluate(AXE);
  const violations = await page.evaluate(
    async ([tags, selector]) => {
      const result = await globalThis.axe.run(selector, {
        runOnly: { type: 'tag', values: tags },
        resultTypes: ['violations'],
      });
      return result.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
    },
    [TAGS, part],
  );
  for (const [id, nodes] of violations) {
    findings.push(`axe ${id}: ${nodes.map((html) => html.slice(0, 160)).join(' | ')}`);
  }
}
