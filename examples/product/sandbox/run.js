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

/** Any key of this form is accepted by the stand-in. */
const STRIPE_KEY = 'sk_test_exampleproduct';

/**
 * Returns the addresses of all parts, and the API key of the product.
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
  const end = () => {
    sandbox.stop();
    stripe.stop();
    process.exit();
  };
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    const { URL: perennialUrl = '', CLIENT_ID: apiKey = '' } = sandbox.variables;
    const perennial = new Perennial({ url: perennialUrl, clientId: apiKey });
    sandbox.connectStripe(STRIPE_KEY);
    // Lets users cancel, and undo it, with their own access token.
    sandbox.run('tenant', 'set', '--self-service', 'on');
    await createPlans(perennial, stripe.url, STRIPE_KEY);
    const origin = `http://127.0.0.1:${port}`;
    const body = { url: `${origin}/webhooks`, event_types: EVENT_TYPES, description: 'Example product' };
    const { secret } = await perennial.post('/webhook-endpoints', { body });
    const settings = readSettings({
      PERENNIAL_URL: perennialUrl,
      PERENNIAL_API_KEY: apiKey,
      WEBHOOK_SECRETS: secret,
      PORT: String(port),
      PAYMENT_ORIGINS: stripe.url,
    });
    const app = createApp(settings, {
      signIn: sandboxSignIn((email) => sandbox.run('sandbox', 'token', email)),
      tools: sandboxTools(perennial, stripe.url, perennialUrl),
    });
    await new Promise((resolve, reject) => {
      createServer(app).once('error', reject).listen(settings.port, settings.host, () => resolve(undefined));
    });
    return { product: origin, perennial: perennialUrl, stripe: stripe.url, apiKey };
  } catch (error) {
    sandbox.stop();
    stripe.stop();
    throw error;
  }
}
