// Measures what the first visit of the overview loads: all files of the console, compressed with gzip.
import { get } from 'node:http';
import { check, url } from '../harness.mjs';
import { loaded, openTab } from './session.mjs';

/** The size in bytes that the files may have together. */
const MAX_BYTES = 250_000;

export async function checkFirstLoad(session) {
  const page = await openTab(session);
  const urls = new Set();
  page.on('request', (request) => urls.add(request.url()));
  await page.goto(`${url}/console/`);
  await loaded(page);
  await page.waitForLoadState('networkidle');
  await page.context().close();
  const files = [...urls].filter((file) => /\/console\/(assets\/|$)/.test(new URL(file).pathname));
  const sizes = await Promise.all(files.map(compressedSize));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const text = `${files.length} files, ${total} bytes with gzip; at most ${MAX_BYTES}`;
  console.log(`  first load: ${text}`);
  check(files.length > 1 && total <= MAX_BYTES, text);
}

/** Returns the number of bytes of a response's body as it is sent. */
function compressedSize(file) {
  return new Promise((resolve, reject) => {
    const request = get(file, { headers: { 'accept-encoding': 'gzip' } }, (response) => {
      let size = 0;
      response.on('data', (chunk) => {
        size += chunk.length;
      });
      response.on('end', () => (response.statusCode === 200 ? resolve(size) : reject(new Error(`${file}: ${response.statusCode}`))));
    });
    request.on('error', reject);
  });
}
