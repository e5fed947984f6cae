// Opens every screen as an admin in light and dark at three widths, and as the other roles.
import { check, inspect, only, photograph, quick, settings } from '../harness.mjs';
import { openDialog, openScreen, SCREENS } from './catalog.mjs';
import { openOverview, signIn } from './session.mjs';

/** Pages that are checked at the same time. */
const CONCURRENCY = 2;

export async function checkScreens(admin) {
  const pending = await passes(admin);
  const forbidden = [];
  const work = async () => {
    for (let pass = pending.shift(); pass; pass = pending.shift()) await checkPass(pass, admin.paths, forbidden);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  console.log(`  ${forbidden.length} dialogs that a role cannot open`);
}

/** Returns the combinations of role, theme and width to check. */
async function passes(admin) {
  const all = [];
  const add = (role, session, colorScheme, width) => all.push({ role, session, colorScheme, width });
  for (const width of [1440, 820, 390]) {
    for (const theme of ['light', 'dark']) add('admin', admin, theme, width);
  }
  if (quick) return all.filter(({ colorScheme, width }) => width === (colorScheme === 'light' ? 1440 : 390));
  for (const role of Object.keys(settings.links).filter((name) => name !== 'admin')) {
    add(role, await signIn(admin.browser, role), 'light', 1440);
  }
  return all;
}

async function checkPass({ role, session, colorScheme, width }, paths, forbidden) {
  const page = await openOverview(session, { colorScheme, viewport: { width, height: 900 } });
  for (const [name, path, act] of SCREENS.filter(([screen]) => screen.includes(only))) {
    const label = `${name}-${width}-${colorScheme}-${role}`;
    try {
      await openScreen(page, path, paths);
      if (act && role !== 'admin' && !(await isAllowed(page, act))) {
        forbidden.push(label);
        continue;
      }
      if (act) await openDialog(page, act);
      // The screen behind a dialog has a check of its own. JSON is scrolled.
      await inspect(page, label, { part: act && quick ? '[role=dialog]' : 'html', boxes: 'textarea' });
      await photograph(page, label, { fullPage: !act });
    } catch (error) {
      check(false, `${label}: ${error.message}`);
    }
  }
  await page.context().close();
}

/** Returns whether a role can open a dialog: its control exists and is not disabled. */
async function isAllowed(page, { control }) {
  if (!control) return true;
  const found = control(page);
  return (await found.count()) > 0 && (await found.getAttribute('aria-disabled')) !== 'true';
}
