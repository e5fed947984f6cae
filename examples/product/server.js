// Runs the product in production. `sandbox/start.js` runs it with a sandbox and a stand-in of the payment provider.
import { createServer } from 'node:http';
import { createApp } from './src/app.js';
import { oidcSignIn } from './src/oidc.js';
import { readSettings } from './src/settings.js';

const settings = readSettings(process.env);
const app = createApp(settings, { signIn: oidcSignIn(settings, process.env) });
createServer(app).listen(settings.port, settings.host, () => {
  console.log(`product: ${settings.origin}, using Perennial at ${settings.perennialUrl}`);
});
