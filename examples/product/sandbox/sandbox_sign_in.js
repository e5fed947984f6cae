// The sign-in of the sandbox. Perennial is the identity provider, and any email address gets a token, so there is no password.
// `src/oidc.js` is the sign-in of production.
import { html } from '../src/html.js';
import { nextPath } from '../src/sign_in.js';
import { HttpError } from '../src/visit.js';

/** @typedef {import('../src/app.js').Routes} Routes */

/**
 * @param {(email: string) => string} issueToken
 * @returns {Routes}
 */
export function sandboxSignIn(issueToken) {
  return {
    'GET /sign-in': async (visit) => ({
      title: 'Sign in',
      lead: html`Enter any email address. If you are new, this creates your account.`,
      body: html`<form class="card" method="post" action="/sign-in?next=${nextPath(visit)}">
  <label for="email">Email address</label>
  <input id="email" name="email" type="email" autocomplete="email" required placeholder="you@example.com">
  <button>Continue</button>
  <p class="muted">This is a sandbox, so there is no password. In production, your identity provider signs users in.</p>
</form>`,
    }),

    'POST /sign-in': async (visit) => {
      const email = (await visit.form()).get('email')?.trim() ?? '';
      if (!/^[^\s@]+@[^\s@]+$/.test(email)) throw new HttpError(400, 'This is not an email address.');
      await visit.perennial.session.signIn({ access_token: issueToken(email), email }, { signUp: true });
      return { redirect: nextPath(visit) };
    },
  };
}
