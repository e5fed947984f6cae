// Writes named pictures of screens and dialogs, to look at: axe does not see clipped or crowded text. Also those of simulated color
// blindness, and the pictures of the documentation.
import { DESKTOP, drive, illustrate, only, photograph, settings } from '../harness.mjs';
import { openDialog, openScreen, prepare, SCREENS } from './catalog.mjs';
import { openOverview, settled } from './session.mjs';

const PHONE = { width: 390, height: 844 };
const LIGHT = `overview subscribers subscriber-past-due subscriptions payments revenue changes-churned churn trials cohorts plans events
  event webhooks webhook-endpoint webhook-attempt payment-accounts payment-account api-keys identity-providers staff health sandbox find
  dialog-change-plan dialog-record-payment dialog-cancel dialog-refund invite advance`;
const DARK = 'overview subscriber-past-due subscriptions revenue dialog-change-plan';
const ON_PHONE = 'overview subscriber-past-due subscriptions dialog-cancel';
const WITH_COLOR_BLINDNESS = 'overview subscriptions subscriber-past-due';
const VISIONS = ['deuteranopia', 'protanopia', 'achromatopsia'];
/** The pictures of the documentation: the name in the catalog, and the height. */
const DOCS = { overview: ['overview', 940], subscriber: ['subscriber-past-due', 760], 'change-plan': ['dialog-change-plan', 760] };

const wanted = (names) => names.split(/\s+/).filter((name) => name.includes(only));

/** Opens a screen or dialog of the catalog in a new page. */
async function open(session, name, options) {
  const [, path, act] = SCREENS.find(([entry]) => entry === name);
  const page = await openOverview(session, { reducedMotion: 'reduce', ...options });
  await openScreen(page, path, session.paths);
  if (act) await openDialog(page, act);
  await settled(page);
  await page.mouse.move(0, 0);
  return page;
}

async function checkPictures(session) {
  for (const [names, colorScheme, viewport] of [
    [LIGHT, 'light', DESKTOP],
    [DARK, 'dark', DESKTOP],
    [ON_PHONE, 'light', PHONE],
    [ON_PHONE, 'dark', PHONE],
  ]) {
    for (const name of wanted(names)) {
      const page = await open(session, name, { colorScheme, viewport });
      const isDialog = await page.getByRole('dialog').isVisible();
      await photograph(page, `${name}-${viewport === PHONE ? 'phone' : 'desktop'}-${colorScheme}`, { fullPage: !isDialog });
      await page.context().close();
    }
  }
}

async function checkColorBlindness(session) {
  for (const name of wanted(WITH_COLOR_BLINDNESS)) {
    const page = await open(session, name, { colorScheme: 'light' });
    const protocol = await page.context().newCDPSession(page);
    for (const type of VISIONS) {
      await protocol.send('Emulation.setEmulatedVisionDeficiency', { type });
      await photograph(page, `${name}-${type}`, { fullPage: true });
    }
    await page.context().close();
  }
}

async function checkDocumentation(session) {
  if (!settings.docs) return;
  for (const [name, [screen, height]] of Object.entries(DOCS)) {
    await illustrate(name, height, (options) => open(session, screen, options));
  }
}

await drive([checkPictures, checkColorBlindness, checkDocumentation], prepare);
