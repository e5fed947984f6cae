#!/usr/bin/env node
// Runs the product with a new sandbox of Perennial and a stand-in of Stripe, until Ctrl-C:
//
//     npm start -- [--port 3000] [--binary ../../target/debug/perennial] [--database URL] [--json]
//
// Installs the SDK of this repository first. Without `--database`, the sandbox starts a private PostgreSQL. Its data is removed at the
// end. `--json` prints the addresses, and the variables of the sandbox, as one JSON object.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '3000' },
    binary: { type: 'string' },
    database: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
/** @param {string} path */
const inRepository = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const built = ['target/debug/perennial', 'target/release/perennial'].map(inRepository).find(existsSync);
const binary = values.binary ?? built ?? 'perennial';

execFileSync('node', [inRepository('clients/typescript/scripts/install-into.mjs'), inRepository('examples/product')], {
  stdio: ['ignore', 'inherit', 'inherit'],
});
// Imported now, because it needs the SDK.
const { run } = await import('./run.js');
const running = await run({
  binary,
  port: Number(values.port),
  database: values.database,
  standIn: inRepository('crates/server/tests/payment_providers/stripe/main.mjs'),
});
if (values.json) {
  console.log(JSON.stringify(running));
} else {
  console.log(`
  product    ${running.product}
  Perennial  ${running.perennial}/docs/
  Stripe     ${running.stripe} (a stand-in)

  Ctrl-C ends all of them.`);
}
