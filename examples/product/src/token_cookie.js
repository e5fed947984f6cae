// Keeps the tokens of a session in an HttpOnly cookie of the browser, so that this server stores no sessions. Scripts cannot read the
// cookie. The server trusts nothing in it: Perennial checks the tokens with each request.

/**
 * @typedef {import('@perennial/client').TokenStore} TokenStore
 * @typedef {import('@perennial/client').SessionTokens} SessionTokens
 */

/** In seconds. Perennial ends the session earlier, by the timeouts of the tenant. */
const MAX_AGE = 365 * 86_400;

/**
 * Returns the store of one request. `setCookie` adds a header to its response.
 *
 * @param {string | undefined} value The value of the session cookie.
 * @param {(value: string, maxAge: number) => void} setCookie
 * @returns {TokenStore}
 */
export function cookieTokenStore(value, setCookie) {
  let tokens = parse(value);
  return {
    read: () => tokens,
    write: (next) => {
      tokens = next;
      if (next) setCookie(Buffer.from(JSON.stringify(next)).toString('base64url'), MAX_AGE);
      else setCookie('', 0);
    },
    // Requests that refresh at the same time get the same tokens, so they need no lock.
    lock: (refresh) => refresh(),
  };
}

/**
 * @param {string | undefined} value
 * @returns {SessionTokens | undefined}
 */
function parse(value) {
  if (!value) return undefined;
  try {
    const { userId, refreshToken, accessToken, expiresAt } = JSON.parse(Buffer.from(value, 'base64url').toString());
    // A token is sent in a header or in JSON. Other characters would not be those of a token.
    if (![refreshToken, accessToken].every((token) => /^[\w.~-]+$/.test(token))) return undefined;
    return { userId, refreshToken, accessToken, expiresAt: Number(expiresAt) };
  } catch {
    return undefined;
  }
}
