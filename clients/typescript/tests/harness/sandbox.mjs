// The sandbox that e2e/run has started.
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:net';
import { Perennial } from '../../dist/index.js';

const { variables, command } = JSON.parse(process.env.PERENNIAL_SANDBOX ?? '{"variables":{},"command":[]}');

export const url = variables.URL;
export const clientId = variables.CLIENT_ID;
/** Short runs, for continuous integration. */
export const isQuick = Boolean(process.env.SDK_QUICK);

/** Returns the client of the product's server. */
export const server = (options) => new Perennial({ url, clientId, ...options });

/** Runs a command of `perennial` and returns its output. */
export function perennial(...args) {
  const [program, ...first] = command;
  return execFileSync(program, [...first, ...args], { env: variables, encoding: 'utf8' }).trim();
}

/** Returns the credentials of a user, with a token that stands in for that of an identity provider. */
export const credentials = (email) => ({ email, access_token: perennial('sandbox', 'token', email) });

/** Returns a port that is free, below those that the system assigns. */
export async function freePort() {
  for (;;) {
    const port = 26_000 + Math.floor(Math.random() * 900);
    const probe = createServer();
    const isFree = await new Promise((resolve) => {
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (isFree) return new Promise((resolve) => probe.close(() => resolve(port)));
  }
}

/** Runs a job for each index, several at a time. Returns the results in order. */
export async function forEachIndex(number, width, job) {
  const results = Array.from({ length: number });
  let next = 0;
  const work = async () => {
    while (next < number) {
      const index = next;
      next += 1;
      results[index] = await job(index);
    }
  };
  await Promise.all(Array.from({ length: width }, work));
  return results;
}

/** Waits until a condition holds, for 15 seconds at most. Returns the milliseconds. */
export async function until(condition) {
  const started = Date.now();
  while (!(await condition())) {
    if (Date.now() - started > 15_000) throw new Error('the condition did not become true');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return Date.now() - started;
}
