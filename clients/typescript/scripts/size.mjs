// Prints the size of the client in a page: bundled with openapi-fetch, minified and compressed. Fails above the limit.
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const MAX_BYTES = 15 * 1024;

const { outputFiles } = await build({
  entryPoints: [new URL('../dist/index.js', import.meta.url).pathname],
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  write: false,
});
const [{ contents }] = outputFiles;
const size = gzipSync(contents, { level: 9 }).length;
console.log(`size: ${size} bytes compressed, ${contents.length} minified; at most ${MAX_BYTES} compressed`);
if (size > MAX_BYTES) process.exit(1);
