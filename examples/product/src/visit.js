import { Perennial, PerennialError } from '@perennial/client';
import { cookieTokenStore } from './token_cookie.js';

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('@perennial/client').Schemas} Schemas
 * @typedef {import('./settings.js').Settings} Settings
 */

const MAX_BODY_BYTES = 262_144;

/** An error that the page shows. */
export class HttpError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** One request of a browser, with a client of Perennial that acts on behalf of its user. */
export class Visit {
  /** The `Set-Cookie` headers of the response. @type {string[]} */
  cookies = [];
  /** @type {Promise<Schemas['SessionUser'] | undefined> | undefined} */
  #user;

  /**
   * @param {IncomingMessage} request
   * @param {Settings} settings
   */
  constructor(request, settings) {
    this.request = request;
    this.settings = settings;
    this.url = new URL(request.url ?? '/', settings.origin);
    this.isSecure = settings.origin.startsWith('https:');
    // Browsers send and accept a cookie with this prefix over HTTPS only.
    this.sessionCookie = this.isSecure ? '__Host-session' : 'session';
    /** Reads on behalf of the user, and refreshes the session. Perennial returns only what belongs to this user. */
    this.perennial = new Perennial({
      url: settings.perennialUrl,
      clientId: settings.apiKey,
      tokenStore: cookieTokenStore(this.cookie(this.sessionCookie), (value, maxAge) => {
        this.setCookie(this.sessionCookie, value, maxAge);
      }),
      fetch: (address, options) => fetch(address, { ...options, headers: this.#forwardedHeaders(options?.headers) }),
    });
  }

  /** @param {string} name */
  cookie(name) {
    const pairs = (this.request.headers.cookie ?? '').split('; ');
    return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
  }

  /**
   * @param {string} name
   * @param {string} value
   * @param {number} maxAge In seconds.
   */
  setCookie(name, value, maxAge) {
    const secure = this.isSecure ? '; Secure' : '';
    this.cookies.push(`${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAge}${secure}`);
  }

  /** Returns the signed-in user, or undefined. Asks Perennial once per request, so an ended session ends here too. */
  user() {
    this.#user ??= this.#loadUser();
    return this.#user;
  }

  async #loadUser() {
    if (!(await this.perennial.session.userId())) return undefined;
    try {
      return (await this.perennial.post('/authentication/user-logged-in')).user;
    } catch (error) {
      // The session has ended, and the cookie is removed. Other errors, such as 503, do not sign the user out.
      if (error instanceof PerennialError && error.code === 'invalid_token') return undefined;
      throw error;
    }
  }

  /** Reads the fields of a submitted form. */
  async form() {
    return new URLSearchParams((await readBody(this.request)).toString());
  }

  /**
   * Adds the address and the device of the browser. Sign-in limits apply to the address, and both appear in the list of devices.
   *
   * @param {HeadersInit | undefined} given
   */
  #forwardedHeaders(given) {
    const headers = new Headers(given);
    const header = this.settings.clientAddressHeader;
    const address = header ? this.request.headers[header] : this.request.socket.remoteAddress;
    if (typeof address === 'string') headers.set('x-forwarded-for', address);
    headers.set('user-agent', this.request.headers['user-agent'] ?? '');
    return headers;
  }
}

/**
 * Reads the body of a request, up to a limit.
 *
 * @param {IncomingMessage} request
 */
export async function readBody(request) {
  /** @type {Buffer[]} */
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BODY_BYTES) throw new HttpError(413, 'The text is too long. The limit is 256 KB.');
    parts.push(part);
  }
  return Buffer.concat(parts);
}
