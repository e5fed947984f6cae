/**
 * @typedef {object} Settings
 * @property {string} perennialUrl
 * @property {string} apiKey A secret API key. Only this server has it.
 * @property {string[]} webhookSecrets Two during a rotation.
 * @property {string} host
 * @property {number} port
 * @property {string} origin The address that browsers use.
 * @property {string[]} paymentOrigins Where the payment provider's pages are.
 * @property {string | undefined} clientAddressHeader The header in which a proxy sends the address of the browser.
 */

/**
 * Reads the settings from environment variables. Throws if one is missing.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {Settings}
 */
export function readSettings(env) {
  const port = Number(env.PORT ?? 3000);
  const host = env.HOST ?? '127.0.0.1';
  return {
    perennialUrl: required(env, 'PERENNIAL_URL'),
    apiKey: required(env, 'PERENNIAL_API_KEY'),
    webhookSecrets: required(env, 'WEBHOOK_SECRETS').split(','),
    host,
    port,
    origin: new URL(env.ORIGIN ?? `http://${host}:${port}`).origin,
    paymentOrigins: (env.PAYMENT_ORIGINS ?? 'https://checkout.stripe.com https://billing.stripe.com').split(' '),
    clientAddressHeader: env.CLIENT_ADDRESS_HEADER?.toLowerCase(),
  };
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string} name
 * @returns {string}
 */
export function required(env, name) {
  const value = env[name];
  if (!value) throw new Error(`${name} is not set; README.md lists the settings`);
  return value;
}
