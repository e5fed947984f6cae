// Example product that sells access with Perennial: a pricing page, a sign-in, and one page that requires a plan.
// No dependencies, so that the requests to Perennial are easy to find. README.md explains how to run it.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

const { URL: perennial = 'http://127.0.0.1:8080', CLIENT_ID, HOST = '127.0.0.1', PORT = '3000', SECURE_COOKIES } = process.env;
// The gated page requires this entry in a plan's `features`.
const FEATURE = 'Audit log';

if (!CLIENT_ID) throw new Error('CLIENT_ID is not set; use the API key that `perennial client create` prints');

/** An error response, from Perennial (with its problem code) or from this server. */
const httpError = (status, { detail, code }) => Object.assign(new Error(detail), { status, code });

// Sends a request to Perennial. CLIENT_ID is used here only, so browsers never see it.
async function request(req, method, path, { body, bearer, key } = {}) {
  const headers = {
    'client-id': CLIENT_ID,
    // Sign-in rate limits apply per IP address; without this header all users would share this server's.
    'x-forwarded-for': req.socket.remoteAddress ?? '',
    // Shown as the device in the list of sessions.
    'user-agent': req.headers['user-agent'] ?? '',
  };
  if (body) headers['content-type'] = 'application/json';
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  if (key) headers['idempotency-key'] = key;
  let response, json;
  try {
    const signal = AbortSignal.timeout(15_000);
    response = await fetch(new URL(path, perennial), { method, headers, signal, body: body && JSON.stringify(body) });
    json = await response.json();
  } catch (error) {
    console.error(`${method} ${path}: ${error.cause?.message ?? error.message}`);
    throw httpError(503, { detail: 'Please try again in a moment.' });
  }
  // A double click: wait for the response to the first request, which both get.
  if (json.code === 'idempotency_in_progress') return wait(100).then(() => request(req, method, path, { body, bearer, key }));
  if (!response.ok) throw httpError(response.status, json);
  return json;
}

// ---- session: two HttpOnly cookies

const cookie = (name, value, seconds) =>
  `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${SECURE_COOKIES ? '; Secure' : ''}`;

function readCookie(req, name) {
  const pair = (req.headers.cookie ?? '').split(/; */).find((part) => part.startsWith(`${name}=`));
  const value = pair?.slice(name.length + 1) ?? '';
  // Only checks that the value is safe in a header; Perennial validates the token.
  return /^[\w.~-]+$/.test(value) ? value : undefined;
}

function setSession(res, tokens) {
  const maxAge = Math.max(0, Math.floor((Date.parse(tokens.refresh_expires_at) - Date.now()) / 1000));
  // The access token's cookie expires with the token. The refresh token then gets the next one.
  const access = cookie('access', tokens.access_token, tokens.expires_in);
  res.setHeader('set-cookie', [access, cookie('refresh', tokens.refresh_token, maxAge)]);
}

const clearSession = (res) => res.setHeader('set-cookie', [cookie('access', '', 0), cookie('refresh', '', 0)]);

/** Calls `action` with a valid access token, refreshed if needed. Returns undefined without a session. */
async function withBearer(req, res, action) {
  const access = readCookie(req, 'access');
  const refresh = readCookie(req, 'refresh');
  try {
    if (access) return await action(access);
  } catch (error) {
    if (error.code !== 'invalid_token') throw error;
  }
  if (!refresh) return undefined;
  try {
    // Concurrent refreshes, for example from two tabs, get the same new tokens.
    const tokens = await request(req, 'POST', '/authentication/refresh-token', { body: { refresh_token: refresh } });
    setSession(res, tokens);
    return await action(tokens.access_token);
  } catch (error) {
    // Only these codes mean that the session has ended. Other errors, such as 503, do not sign the user out.
    if (error.code !== 'invalid_grant' && error.code !== 'invalid_token') throw error;
    clearSession(res);
    return undefined;
  }
}

// The user is determined by Perennial on each request, never by the browser.
const currentUser = (req, res) =>
  withBearer(req, res, async (bearer) => (await request(req, 'POST', '/authentication/user-logged-in', { bearer })).user);

// ---- pages

const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const safe = (v) => (v instanceof Safe ? v.text : Array.isArray(v) ? v.map(safe).join('') : escaped(v ?? ''));
/** A template that escapes its values, except for results of itself. */
const html = (parts, ...values) => new Safe(parts.reduce((all, part, i) => all + safe(values[i - 1]) + part));
class Safe { constructor(text) { this.text = text; } }

// For display only: a float is not exact enough for calculations.
const money = (plan) => new Intl.NumberFormat('en', { style: 'currency', currency: plan.currency }).format(plan.price);

function show(res, status, title, user, content) {
  const account = user
    ? html`<form method="post" action="/sign-out">${user.email} <button>Sign out</button></form>`
    : html`<a href="/sign-in">Sign in</a>`;
  res.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
  res.end(html`<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<nav><a href="/">Plans</a> <a href="/audit-log">Audit log</a> ${account}</nav><h1>${title}</h1>${content}</html>`.text);
}

const redirect = (res, location) => res.writeHead(303, { location }).end();

const pages = {
  'GET /': async (req, res) => {
    const user = await currentUser(req, res);
    const plans = await request(req, 'GET', '/subscription-plans?is_active=true&sort=tier&limit=200');
    const owned = user && (await request(req, 'GET', `/entitlements/${user.id}`)).subscriptions.map(({ slug }) => slug);
    const offer = (plan) => {
      if (owned?.includes(plan.slug)) return html`<p>You have this plan.</p>`;
      // The idempotency key is part of the form, so that a double click creates one subscription.
      return html`<form method="post" action="/subscribe"><input type="hidden" name="plan" value="${plan.slug}">
        <input type="hidden" name="key" value="${randomUUID()}"><button>Subscribe</button></form>`;
    };
    show(res, 200, 'Plans', user, plans.data.map((plan) => html`<h2>${plan.name}${plan.most_popular ? ' (most popular)' : ''}</h2>
      <p>${money(plan)}, ${plan.billing_cycle}</p><p>${plan.description}</p>
      <ul>${plan.feature_list.map((feature) => html`<li>${feature}</li>`)}</ul>${offer(plan)}`));
  },

  'GET /sign-in': async (req, res) => show(res, 200, 'Sign in', undefined,
    // A real product redirects to its identity provider, which returns the token.
    html`<form method="post" action="/sign-in"><p><label>Email <input name="email" type="email" required></label>
      <p><label>Token <input name="token" required></label> from <code>perennial sandbox token EMAIL</code>
      <p><button>Sign in</button></form>`),

  'POST /sign-in': async (req, res, form) => {
    const body = { access_token: form.get('token') ?? '', email: form.get('email') ?? '' };
    setSession(res, await request(req, 'POST', '/authentication/sign-in', { body }).catch((error) => {
      if (error.code !== 'account_not_found') throw error;
      return request(req, 'POST', '/authentication/sign-up', { body });
    }));
    redirect(res, '/');
  },

  'POST /sign-out': async (req, res) => {
    await withBearer(req, res, (bearer) => request(req, 'POST', '/authentication/tokens/logout', { bearer }));
    clearSession(res);
    redirect(res, '/');
  },

  'POST /subscribe': async (req, res, form) => {
    const user = await currentUser(req, res);
    if (!user) return redirect(res, '/sign-in');
    const plan = await request(req, 'GET', `/subscription-plans/${encodeURIComponent(form.get('plan') ?? '')}`);
    const { subscriptions } = await request(req, 'GET', `/entitlements/${user.id}`);
    if (!subscriptions.some((subscription) => subscription.subscription_plan_id === plan.id)) {
      // A real product takes a payment first: create with status "pending", and set "active" when it is paid.
      const body = { user_id: user.id, subscription_plan_id: plan.id };
      await request(req, 'POST', '/subscriptions', { body, key: `subscribe ${user.id} ${form.get('key') || plan.id}` });
    }
    redirect(res, '/audit-log');
  },

  'GET /audit-log': async (req, res) => {
    const user = await currentUser(req, res);
    if (!user) return redirect(res, '/sign-in');
    const { features } = await request(req, 'GET', `/entitlements/${user.id}`);
    if (features.includes(FEATURE)) return show(res, 200, 'Audit log', user, html`<p>Nothing has happened yet.</p>`);
    show(res, 403, 'Not in your plan', user, html`<p>Your plan does not include the audit log. <a href="/">See all plans.</a></p>`);
  },
};

async function readForm(req) {
  let text = '';
  for await (const chunk of req.setEncoding('utf8')) {
    text += chunk;
    if (text.length > 16_384) throw httpError(413, { detail: 'The form is too large.' });
  }
  return new URLSearchParams(text);
}

createServer(async (req, res) => {
  res.setHeader('cache-control', 'no-store');
  res.setHeader('content-security-policy', "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
  res.setHeader('x-content-type-options', 'nosniff');
  try {
    const page = pages[`${req.method} ${req.url.split('?')[0]}`];
    if (!page) throw httpError(404, { detail: 'Page not found.' });
    // Refuses forms sent from other sites (CSRF).
    if (req.method === 'POST' && !['same-origin', undefined].includes(req.headers['sec-fetch-site'])) {
      throw httpError(403, { detail: 'Cross-site form submission.' });
    }
    await page(req, res, req.method === 'POST' ? await readForm(req) : undefined);
  } catch (error) {
    // invalid_client is a configuration error of this server, so the user gets a generic message.
    if (!error.status || error.code === 'invalid_client') console.error(error);
    const { status, message } = error.status && error.code !== 'invalid_client' ? error : { status: 500, message: 'Internal error.' };
    show(res, status, 'Error', undefined, html`<p>${message}</p>`);
  }
}).listen(Number(PORT), HOST, () => console.log(`product: http://${HOST}:${PORT}, using Perennial at ${perennial}`));
