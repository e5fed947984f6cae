// The processes that the product needs: a sandbox of Perennial, and a stand-in of Stripe.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/**
 * Starts the stand-in and returns its address.
 *
 * @param {string} file
 */
export async function startStandIn(file) {
  // It ends when its standard input closes, so it never outlives this process.
  const child = spawn('node', [file, '--port', '0'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [url] = await once(createInterface(child.stdout), 'line');
  return { url: String(url), stop: () => child.kill() };
}

/**
 * Starts a sandbox with an empty state directory, which is removed when it stops.
 *
 * @param {string} binary
 * @param {string | undefined} database
 * @param {string} stripeUrl
 */
export function startSandbox(binary, database, stripeUrl) {
  const folder = mkdtempSync(join(tmpdir(), 'perennial-product-'));
  // If root runs this, PostgreSQL runs as another user.
  chmodSync(folder, 0o711);
  // Not the variables of another sandbox, which `eval "$(perennial dev --background)"` has set.
  const { PATH, HOME, LANG } = process.env;
  const environment = {
    PATH,
    HOME,
    LANG,
    PERENNIAL_STRIPE_API_BASE: stripeUrl,
    ...(database && { DATABASE_URL: database }),
  };
  const dev = ['dev', '--data', join(folder, 'state')];
  /** @param {string[]} args */
  const execute = (args, env = {}) =>
    execFileSync(binary, args, {
      env: { ...environment, ...env },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }).trim();
  const stop = () => {
    execute([...dev, '--stop']);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    /** @type {Record<string, string>} */
    const variables = JSON.parse(execute([...dev, '--background', '--json']));
    /** @param {string[]} args */
    const run = (...args) => execute(args, variables);
    return {
      variables,
      stop,
      run,
      /**
       * Returns the API key of a new client.
       *
       * @param {string} name
       * @param {string[]} scopes
       * @returns {string}
       */
      createClient: (name, scopes) => {
        const flags = scopes.flatMap((scope) => ['--scope', scope]);
        return JSON.parse(run('client', 'create', '--json', '--name', name, ...flags)).client_id;
      },
      /** @param {string} key */
      connectStripe: (key) => {
        const file = join(folder, 'stripe-key.txt');
        writeFileSync(file, `${key}\n`, { mode: 0o600 });
        return run('payment-account', 'connect', 'stripe', '--api-key-file', file, '--url', variables.URL ?? '');
      },
    };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}
