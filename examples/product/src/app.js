// The routes of the product, and what all responses have in common.
import { readFile } from 'node:fs/promises';
import { Perennial, PerennialError } from '@perennial/client';
import * as account from './account.js';
import { checkPage } from './check_page.js';
import * as checkout from './checkout.js';
import * as devices from './devices.js';
import { html } from './html.js';
import { document } from './layout.js';
import { pricingPage } from './pricing.js';
import { HttpError, Visit } from './visit.js';
import { UserChanges, webhookReceiver } from './webhooks.js';

/**
 * @typedef {import('./settings.js').Settings} Settings
 * @typedef {import('./layout.js').Page} Page
 * @typedef {{ redirect: string }} Redirect
 * @typedef {(visit: Visit) => Promise<Page | Redirect>} Handler
 * @typedef {Record<string, Handler>} Routes By method and path, such as `GET /account`.
 */

/**
 * The parts that sandbox and production do not share.
 *
 * @typedef {object} Extensions
 * @property {Routes} signIn The sign-in page and what it leads to.
 * @property {Routes} [tools] The pages of the sandbox.
 */

/** In milliseconds. Webhooks report changes immediately, so this is only the limit for one that is late. */
const ENTITLEMENTS_TTL = 60_000;
const FILES = {
  '/frame.css': 'text/css; charset=utf-8',
  '/text.css': 'text/css; charset=utf-8',
  '/cards.css': 'text/css; charset=utf-8',
  '/icon.svg': 'image/svg+xml',
};

/**
 * Returns the request handler of the product.
 *
 * @param {Settings} settings
 * @param {Extensions} extensions
 * @returns {import('node:http').RequestListener}
 */
export function createApp(settings, { signIn, tools }) {
  /** Acts for this server: plans, purchases, and the cached entitlements of all users. */
  const perennial = new Perennial({
    url: settings.perennialUrl,
    clientId: settings.apiKey,
    entitlementsTtl: ENTITLEMENTS_TTL,
  });
  const changes = new UserChanges();
  const receiveWebhook = webhookReceiver(settings, perennial, changes);
  /** @type {Routes} */
  const routes = {
    'GET /': pricingPage(perennial),
    'GET /check': checkPage(perennial),
    'POST /check': checkPage(perennial),
    'GET /account': account.accountPage(perennial),
    'GET /account/cancel': account.cancelPage(perennial),
    'POST /account/cancel': account.changeStatus(perennial, 'cancelled'),
    'POST /account/resume': account.changeStatus(perennial, 'active'),
    'POST /account/devices/end': devices.endDevice,
    'POST /account/devices/end-others': devices.endOtherDevices,
    'POST /checkout': checkout.startCheckout(perennial),
    'GET /welcome': checkout.welcomePage(perennial, changes),
    'POST /billing-portal': checkout.openBillingPortal(perennial),
    'POST /sign-out': signOut,
    ...signIn,
    ...tools,
  };

  /** @type {(...args: Parameters<import('node:http').RequestListener>) => Promise<void>} */
  const respond = async (request, response) => {
    const visit = new Visit(request, settings);
    const { pathname } = visit.url;
    for (const [name, value] of Object.entries(securityHeaders(settings))) response.setHeader(name, value);
    if (pathname === '/webhooks' && request.method === 'POST') {
      response.writeHead(await receiveWebhook(request)).end();
      return;
    }
    if (pathname in FILES) {
      response.writeHead(200, {
        'content-type': FILES[/** @type {keyof typeof FILES} */ (pathname)],
        'cache-control': 'max-age=300',
      });
      response.end(await readFile(new URL(`../assets${pathname}`, import.meta.url)));
      return;
    }
    /** @type {Page | Redirect} */
    let result;
    try {
      result = await findHandler(routes, visit)(visit);
    } catch (error) {
      result = errorPage(error);
    }
    response.setHeader('set-cookie', visit.cookies);
    response.setHeader('cache-control', 'no-store');
    if ('redirect' in result) {
      response.writeHead(303, { location: result.redirect }).end();
      return;
    }
    // An error page must not fail because the user cannot be read.
    const user = await visit.user().catch(() => undefined);
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.writeHead(result.status ?? 200).end(document(result, { pathname, user, hasTools: tools !== undefined }));
  };
  return (request, response) => {
    // The target of a request can be anything.
    if (!URL.canParse(request.url ?? '/', settings.origin)) {
      response.writeHead(400).end();
      return;
    }
    respond(request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  };
}

/**
 * @param {Routes} routes
 * @param {Visit} visit
 * @returns {Handler}
 */
function findHandler(routes, { request, url }) {
  const handler = routes[`${request.method} ${url.pathname}`];
  if (!handler) throw new HttpError(404, 'There is no such page.');
  // Refuses forms that other sites submit. Browsers send this header, and scripts cannot change it.
  const site = request.headers['sec-fetch-site'];
  if (request.method === 'POST' && site !== undefined && site !== 'same-origin') {
    throw new HttpError(403, 'This form was submitted by another site.');
  }
  return handler;
}

/** @type {Handler} */
async function signOut(visit) {
  await visit.perennial.session.signOut();
  return { redirect: '/' };
}

/**
 * @param {unknown} error
 * @returns {Page}
 */
function errorPage(error) {
  if (error instanceof HttpError) {
    const title = error.status === 404 ? 'Page not found' : 'That did not work';
    return { title, status: error.status, body: html`<p>${error.message}</p><p><a href="/">Back to the start</a></p>` };
  }
  // Details are for the log. `requestId` finds the request in the log of Perennial.
  if (error instanceof PerennialError) console.error(`Perennial: ${error.code} ${error.detail} (${error.requestId})`);
  else console.error(error);
  const body = html`<p>This is our fault, not yours. Please try again in a moment.</p>`;
  return { title: 'Something went wrong', status: 503, body };
}

/** @param {Settings} settings */
function securityHeaders({ paymentOrigins, origin }) {
  const policy = {
    'default-src': "'none'",
    'style-src': "'self'",
    'img-src': "'self'",
    // Forms lead to the payment provider by a redirect.
    'form-action': ["'self'", ...paymentOrigins].join(' '),
    'frame-ancestors': "'none'",
    'base-uri': "'none'",
  };
  /** @type {Record<string, string>} */
  const headers = {
    'content-security-policy': Object.entries(policy)
      .map((entry) => entry.join(' '))
      .join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
  };
  if (origin.startsWith('https:')) headers['strict-transport-security'] = 'max-age=31536000';
  return headers;
}
