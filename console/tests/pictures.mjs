// Writes named pictures of screens and dialogs, to look at: axe does not see clipped or crowded text.
//
// --out DIR    where all pictures are written, as PNG, and those of simulated color blindness
// --docs DIR   where the pictures of the documentation are written, as WebP, in light and dark
import { mkdirSync, writeFileSync } from 'node:fs';
import { loaded, openPage, options, settled, start } from './browser.mjs';
import { pathOf, prepare, SCREENS } from './catalog.mjs';
import { startReceiver } from './operations.mjs';

const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

/** The pictures to look at: name in the catalog, theme, and viewport. */
const PICTURES = [
  ...[
    'overview',
    'subscribers',
    'subscriber-past-due',
    'subscriptions',
    'payments',
    'revenue',
    'changes-churned',
    'churn',
    'trials',
    'cohorts',
    'plans',
    'events',
    'event',
    'webhooks',
    'webhook-endpoint',
    'webhook-attempt',
    'payment-accounts',
    'payment-account',
    'api-keys',
    'identity-providers',
    'staff',
    'health',
    'sandbox',
    'find',
    'dialog-change-plan',
    'dialog-record-payment',
    'dialog-cancel',
    'dialog-refund',
    'invite',
    'advance',
  ].map((name) => [name, 'light', DESKTOP]),
  ...['overview', 'subscriber-past-due', 'subscriptions', 'revenue', 'dialog-change-plan'].map(
    (name) => [name, 'dark', DESKTOP],
  ),
  ...['overview', 'subscriber-past-due', 'subscriptions', 'dialog-cancel'].flatMap((name) => [
    [name, 'light', PHONE],
    [name, 'dark', PHONE],
  ]),
];
const VISIONS = ['deuteranopia', 'protanopia', 'achromatopsia'];
const VISION_SCREENS = ['overview', 'subscriptions', 'subscriber-past-due'];

/** The pictures of the documentation: its name, the name in the catalog, and the height. */
const DOCS = [
  ['overview', 'overview', 940],
  ['subscriber', 'subscriber-past-due', 760],
  ['change-plan', 'dialog-change-plan', 760],
];
const DOCS_WIDTH = 1280;
const DOCS_SCALE = 1.5;
const DOCS_QUALITY = 82;

const session = await start();
const receiver = await startReceiver();
const records = await prepare(session, receiver);
let written = 0;
if (options.out) {
  const wanted = PICTURES.filter(([name]) => name.includes(options.only));
  for (const [name, theme, viewport] of wanted) {
    await take(name, { colorScheme: theme, viewport }, async (page, isDialog) => {
      const device = viewport === PHONE ? 'phone' : 'desktop';
      const path = `${options.out}/${name}-${device}-${theme}.png`;
      await page.screenshot({ path, fullPage: !isDialog });
    });
  }
  for (const name of VISION_SCREENS.filter((entry) => entry.includes(options.only))) {
    await take(name, { colorScheme: 'light', viewport: DESKTOP }, async (page) => {
      const protocol = await page.context().newCDPSession(page);
      for (const type of VISIONS) {
        await protocol.send('Emulation.setEmulatedVisionDeficiency', { type });
        await page.screenshot({ path: `${options.out}/${name}-${type}.png`, fullPage: true });
      }
    });
  }
}
if (options.docs) {
  mkdirSync(options.docs, { recursive: true });
  for (const [file, name, height] of DOCS) {
    for (const theme of ['light', 'dark']) {
      const viewport = { width: DOCS_WIDTH, height };
      const settings = { colorScheme: theme, viewport, deviceScaleFactor: DOCS_SCALE };
      await take(name, settings, async (page) => {
        const protocol = await page.context().newCDPSession(page);
        const { data } = await protocol.send('Page.captureScreenshot', {
          format: 'webp',
          quality: DOCS_QUALITY,
        });
        writeFileSync(`${options.docs}/${file}-${theme}.webp`, Buffer.from(data, 'base64'));
      });
    }
  }
}
await session.browser.close();
receiver.close();
console.log(`pictures: ${written} pages in ${options.out ?? options.docs}`);

/** Opens a screen or dialog of the catalog in a new page, and hands the page on. */
async function take(name, settings, shoot) {
  const [, path, act] = SCREENS.find(([entry]) => entry === name);
  const { context, page } = await openPage(session, { reducedMotion: 'reduce', ...settings });
  await page.goto(`${options.url}/console/`);
  await loaded(page);
  const target = await pathOf(page, path, records);
  if (target !== '/') await page.goto(`${options.url}/console${target}`);
  await loaded(page);
  if (act) {
    await act(page);
    await page.getByRole('dialog').waitFor();
  }
  await settled(page);
  await page.mouse.move(0, 0);
  await shoot(page, Boolean(act));
  written += 1;
  await context.close();
}
