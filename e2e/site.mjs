// Opens the exported documentation at each place, which is the URL of a folder, with a slash at its end: on the disk and on a web server.
import { check, checkWidths, drive, openPage, photograph, settings } from './harness.mjs';

const { places } = settings;
const PAGES = ['index', 'tutorial/quickstart', 'console', 'explanation/lifecycle', 'errors', 'errors/slug_taken', 'reference/commands'];
const WIDTHS = [390, 1440];

async function checkPages(browser) {
  for (const place of places) {
    for (const colorScheme of ['light', 'dark']) {
      for (const width of WIDTHS) {
        const page = await openPage(browser, [place], { colorScheme, viewport: { width, height: 1000 } });
        for (const path of PAGES) {
          const name = `${path.replaceAll('/', '_')}-${width}-${colorScheme}`;
          await page.goto(`${place}${path}.html`, { waitUntil: 'load' });
          const { images, styled } = await page.evaluate(() => ({
            images: [...document.images].filter((image) => !image.complete || !image.naturalWidth).map((image) => image.src),
            styled: getComputedStyle(document.querySelector('header')).display === 'flex',
          }));
          check(images.length === 0, `${place}: ${name} shows no ${images.join(', ')}`);
          check(styled, `${place}: ${name} has no style`);
          await checkWidths(page, `${place}: ${name}`);
          if (place.startsWith('file:')) await photograph(page, name);
        }
        await page.context().close();
      }
    }
  }
}

/** Searches on a page in a folder, follows the result, and returns to the contents. */
async function checkSearch(browser) {
  for (const place of places) {
    const page = await openPage(browser, [place]);
    await page.goto(`${place}tutorial/quickstart.html`);
    await page.fill('#search', 'slug_taken');
    await page.locator('#results a').first().waitFor();
    await page.locator('#search').press('Enter');
    await page.waitForURL(`${place}errors/slug_taken.html`);
    await page.locator('.brand').click();
    await page.waitForURL(`${place}index.html`);
    await page.locator('main a').first().click();
    await page.waitForURL(/\.html/);
    await page.context().close();
  }
}

await drive([checkPages, checkSearch]);
