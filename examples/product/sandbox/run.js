// Starts everything, connects the parts, and ends them together.
import { createServer } from 'node:http';
import { Perennial } from '@perennial/client';
import { createApp } from '../src/app.js';
import { readSettings } from '../src/settings.js';
import { EVENT_TYPES } from '../src/webhooks.js';
import { createPlans } from './catalog.js';
import { startSandbox, startStandIn } from './processes.js';
import { sandboxSignIn } from './sandbox_sign_in.js';
import { sandboxTools } from './tools.js';

/** The stand-in accepts any key of this form. */
const STRIPE_KEY = 'sk_test_exampleproduct';
/** What the product may do with its API key. */
const SCOPES = ['auth', 'plans:read', 'subscriptions:read', 'subscriptions:write', 'payments:read'];

/**
 * Returns the addresses of all parts, and the variables of the sandbox.
 *
 * @param {object} options
 * @param {string} options.binary The program `perennial`.
 * @param {number} options.port
 * @param {string | undefined} options.database
 * @param {string} options.standIn The main file of the stand-in.
 */
export async function run({ binary, port, database, standIn }) {
  const stripe = await startStandIn(standIn);
  const sandbox = startSandbox(binary, database, stripe.url);
  const stop = () => {
    sandbox.stop();
    stripe.stop();
  };
  const end = () => {
    stop();
    process.exit();
  };
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    const product = `http://127.0.0.1:${port}`;
    const { URL: perennialUrl = '', CLIENT_ID: operatorKey = '' } = sandbox.variables;
    const operator = new Perennial({ url: perennialUrl, clientId: operatorKey });
    sandbox.connectStripe(STRIPE_KEY);
    await createPlans(operator, stripe.url, STRIPE_KEY);
    const body = { url: `${product}/webhooks`, event_types: EVENT_TYPES, description: 'Example product' };
    const { secret } = await operator.post('/webhook-endpoints', { body });
    const settings = readSettings({
      PERENNIAL_URL: perennialUrl,
      PERENNIAL_API_KEY: sandbox.createClient('product', SCOPES),
      WEBHOOK_SECRETS: secret,
      PORT: String(port),
      PAYMENT_ORIGINS: stripe.url,
    });
    const clock = new Perennial({
      url: perennialUrl,
      clientId: sandbox.createClient('sandbox page', ['sandbox:write']),
    });
    const app = createApp(settings, {
      signIn: sandboxSignIn((email) => sandbox.run('sandbox', 'token', '--', email)),
      tools: sandboxTools(clock, stripe.url, perennialUrl),
    });
    await new Promise((resolve, reject) => {
      createServer(app)
        .once('error', reject)
        .listen(settings.port, settings.host, () => resolve(undefined));
    });
    return { product, perennial: perennialUrl, stripe: stripe.url, variables: sandbox.variables };
  } catch (error) {
    stop();
    throw error;
  }
}
