// The official Lemon Squeezy SDK, connected to a stand-in. The SDK has a fixed host, so `fetch` is replaced.

import * as sdk from '@lemonsqueezy/lemonsqueezy.js';

/** Sends the requests of the SDK to this address, with this key. */
export function connectSdk(address, apiKey = 'judge') {
  const original = globalThis.fetch;
  globalThis.fetch = (input, init) => original(String(input).replace('https://api.lemonsqueezy.com', address), init);
  sdk.lemonSqueezySetup({ apiKey });
  return sdk;
}

/** Returns the data of a successful response. */
export async function ok(promise) {
  const { error, data, statusCode } = await promise;
  if (error) throw new Error(`${statusCode}: ${error.message} ${JSON.stringify(error.cause)}`);
  return data;
}
