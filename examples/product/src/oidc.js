// Sign-in with an OpenID Connect provider, by the authorization code flow with PKCE. The provider must be known to Perennial too
// (`perennial provider add`), which verifies its tokens.
import { createHash, randomBytes } from 'node:crypto';
import { html } from './html.js';
import { required } from './settings.js';
import { nextPath } from './sign_in.js';
import { HttpError } from './visit.js';

/**
 * @typedef {import('./app.js').Routes} Routes
 * @typedef {import('./settings.js').Settings} Settings
 */

/** How long the user may stay on the provider's pages, in seconds. */
const FLOW_TIMEOUT = 600;

/**
 * Returns the routes of the sign-in.
 *
 * @param {Settings} settings
 * @param {NodeJS.ProcessEnv} env
 * @returns {Routes}
 */
export function oidcSignIn(settings, env) {
  const issuer = required(env, 'OIDC_ISSUER').replace(/\/$/, '');
  const clientId = required(env, 'OIDC_CLIENT_ID');
  // Which token Perennial accepts depends on the provider: see "Connect an identity provider".
  const tokenName = env.OIDC_TOKEN ?? 'access_token';
  const redirectUri = `${settings.origin}/sign-in/callback`;
  const random = () => randomBytes(32).toString('base64url');

  async function discover() {
    const response = await fetch(`${issuer}/.well-known/openid-configuration`, { signal: AbortSignal.timeout(10_000) });
    if (!response.ok) throw new Error(`the identity provider responds ${response.status}`);
    return /** @type {Promise<Record<string, string>>} */ (response.json());
  }

  return {
    'GET /sign-in': async (visit) => {
      const { authorization_endpoint } = await discover();
      const [state, verifier] = [random(), random()];
      // The cookie connects the callback with this browser, so a link cannot sign a user in to an account of the sender.
      visit.setCookie('sign-in', `${state}.${verifier}.${encodeURIComponent(nextPath(visit))}`, FLOW_TIMEOUT);
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: env.OIDC_SCOPE ?? 'openid email',
        state,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      });
      return { redirect: `${authorization_endpoint}?${query}` };
    },

    'GET /sign-in/callback': async (visit) => {
      const [state, verifier, next] = visit.cookie('sign-in')?.split('.') ?? [];
      const { searchParams } = visit.url;
      visit.setCookie('sign-in', '', 0);
      if (!state || !verifier || searchParams.get('state') !== state) throw new HttpError(400, 'Please sign in again.');
      const code = searchParams.get('code');
      if (!code) {
        return {
          title: 'You are not signed in',
          body: html`<p>The sign-in was not completed.</p><p><a href="/sign-in">Try again</a></p>`,
        };
      }
      const { token_endpoint, userinfo_endpoint } = await discover();
      const body = new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        client_id: clientId,
        code_verifier: verifier,
        ...(env.OIDC_CLIENT_SECRET ? { client_secret: env.OIDC_CLIENT_SECRET } : {}),
      });
      const tokens = await readJson(token_endpoint, { method: 'POST', body });
      const { email } = await readJson(userinfo_endpoint, {
        headers: { authorization: `Bearer ${tokens.access_token}` },
      });
      // Perennial verifies the token, and that the address is the verified one of this token.
      const credentials = { access_token: tokens[tokenName] ?? '', email: email ?? '' };
      await visit.perennial.session.signIn(credentials, { signUp: true });
      return { redirect: decodeURIComponent(next ?? '/') };
    },
  };
}

/**
 * @param {string | undefined} address
 * @param {RequestInit} options
 * @returns {Promise<Record<string, string>>}
 */
async function readJson(address, options) {
  const response = await fetch(address ?? '', { ...options, signal: AbortSignal.timeout(10_000) });
  if (!response.ok) throw new Error(`the identity provider responds ${response.status} to ${address}`);
  return /** @type {Promise<Record<string, string>>} */ (response.json());
}
