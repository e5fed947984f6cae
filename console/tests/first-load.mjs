// Measures what the first visit of the overview loads: all files of the console, compressed with gzip.
import { get } from 'node:http';
import { loaded, openPage, options, start } from './browser.mjs';

/** The size in bytes that the files may have together. */
const MAX_BYTES = 250_000;

const session = await start();
const { page } = await openPage(session, { viewport: { width: 1440, height: 900 } });
const urls = new Set();
page.on('request', (request) => urls.add(request.url()));
await page.goto(`${options.url}/console/`);
await loaded(page);
await page.waitForLoadState('networkidle');
await session.browser.close();

const files = [...urls].filter((url) => /\/console\/(assets\/|$)/.test(new URL(url).pathname));
const sizes = await Promise.all(files.map(compressedSize));
const total = sizes.reduce((sum, size) => sum + size, 0);
const isSmall = files.length > 1 && total <= MAX_BYTES;
console.log(
  `first load: ${files.length} files, ${Math.round(total / 1000)} KB with gzip; at most ${MAX_BYTES / 1000} KB`,
);
process.exitCode = isSmall ? 0 : 1;

/** Returns the number of bytes of a response's body as it is sent. */
function compressedSize(url) {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers: { 'accept-encoding': 'gzip' } }, (response) => {
      let size = 0;
      response.on('data', (chunk) => {
        size += chunk.length;
      });
      response.on('end', () =>
        response.statusCode === 200
          ? resolve(size)
          : reject(new Error(`${url}: ${response.statusCode}`)),
      );
    });
    request.on('error', reject);
  });
}
