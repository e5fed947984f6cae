// A small product that sells access with Perennial: a pricing page, a sign-in, and one page for those who have the plan.
// It needs nothing but Node.js 20, so that all there is to see is what is said to Perennial. README.md says how to run it.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';

const { URL: perennial = 'http://127.0.0.1:8080', CLIENT_ID, HOST = '127.0.0.1', PORT = '3000', SECURE_COOKIES } = process.env;
// What the gated page asks for: one of the words in a plan's `features`.
const FEATURE = 'Audit log';

if (!CLIENT_ID) throw new Error('CLIENT_ID is not set: what `perennial client create` prints as the value of its header');

/** What ends a request early: Perennial's own words, or ours. Whoever catches it looks at `code`. */
const refused = (status, { detail, code }) => Object.assign(new Error(detail), { status, code });

// The only place that knows CLIENT_ID. It runs on this server alone: a browser never sees the secret.
async function ask(req, method, path, { body, bearer, key } = {}) {
  const headers = {
    'client-id': CLIENT_ID,
    // Attempts to sign in are counted by the user's address; without it all users share this server's.
    'x-forwarded-for': req.socket.remoteAddress ?? '',
    // What the user sees as the device in the list of sessions.
    'user-agent': req.headers['user-agent'] ?? '',
  };
  if (body) headers['content-type'] = 'application/json';
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  if (key) headers['idempotency-key'] = key;
  let answer, json;
  try {
    const signal = AbortSignal.timeout(15_000);
    answer = await fetch(new URL(path, perennial), { method, headers, signal, body: body && JSON.stringify(body) });
    json = await answer.json();
  } catch (error) {
    console.error(`${method} ${path}: ${error.cause?.message ?? error.message}`);
    throw refused(503, { detail: 'Please try again in a moment.' });
  }
  // A double click: the first one is being done, and in a moment its answer is there for both.
  if (json.code === 'idempotency_in_progress') return wait(100).then(() => ask(req, method, path, { body, bearer, key }));
  if (!answer.ok) throw refused(answer.status, json);
  return json;
}

// ---- the session: two cookies that no script can read

const cookie = (name, value, seconds) =>
  `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${seconds}${SECURE_COOKIES ? '; Secure' : ''}`;

function cookieOf(req, name) {
  const found = (req.headers.cookie ?? '').split(/; */).find((part) => part.startsWith(`${name}=`));
  const value = found?.slice(name.length + 1) ?? '';
  // What a header can carry is checked here; what it means is for Perennial to say.
  return /^[\w.~-]+$/.test(value) ? value : undefined;
}

function keep(res, tokens) {
  const until = Math.max(0, Math.floor((Date.parse(tokens.refresh_expires_at) - Date.now()) / 1000));
  // The browser drops the first when the access token runs out; what is left then is the way to the next.
  const access = cookie('access', tokens.access_token, tokens.expires_in);
  res.setHeader('set-cookie', [access, cookie('refresh', tokens.refresh_token, until)]);
}

const forget = (res) => res.setHeader('set-cookie', [cookie('access', '', 0), cookie('refresh', '', 0)]);

/** Does `action` with an access token that holds, refreshed if need be; undefined if nobody is signed in. */
async function withBearer(req, res, action) {
  const access = cookieOf(req, 'access');
  const refresh = cookieOf(req, 'refresh');
  try {
    if (access) return await action(access);
  } catch (error) {
    if (error.code !== 'invalid_token') throw error;
  }
  if (!refresh) return undefined;
  try {
    // Two tabs may do this at once: both get the same successor.
    const tokens = await ask(req, 'POST', '/authentication/refresh-token', { body: { refresh_token: refresh } });
    keep(res, tokens);
    return await action(tokens.access_token);
  } catch (error) {
    // Only these two say that the session is over. Perennial being away, say, signs nobody out.
    if (error.code !== 'invalid_grant' && error.code !== 'invalid_token') throw error;
    forget(res);
    return undefined;
  }
}

// Who a user is comes from Perennial at every request, and never from what a browser says of itself.
const userOf = (req, res) =>
  withBearer(req, res, async (bearer) => (await ask(req, 'POST', '/authentication/user-logged-in', { bearer })).user);

// ---- what is shown

const escaped = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const safe = (v) => (v instanceof Safe ? v.text : Array.isArray(v) ? v.map(safe).join('') : escaped(v ?? ''));
/** A template whose values are escaped, but for those that it made itself. */
const html = (parts, ...values) => new Safe(parts.reduce((all, part, i) => all + safe(values[i - 1]) + part));
class Safe { constructor(text) { this.text = text; } }

// For people to read only: sums are Perennial's, which never holds money as a float.
const money = (plan) => new Intl.NumberFormat('en', { style: 'currency', currency: plan.currency }).format(plan.price);

function show(res, status, title, user, content) {
  const who = user
    ? html`<form method="post" action="/sign-out">${user.email} <button>Sign out</button></form>`
    : html`<a href="/sign-in">Sign in</a>`;
  res.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
  res.end(html`<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<nav><a href="/">Plans</a> <a href="/audit-log">Audit log</a> ${who}</nav><h1>${title}</h1>${content}</html>`.text);
}

const go = (res, where) => res.writeHead(303, { location: where }).end();

const pages = {
  'GET /': async (req, res) => {
    const user = await userOf(req, res);
    const plans = await ask(req, 'GET', '/subscription-plans?is_active=true&sort=tier&limit=200');
    const has = user && (await ask(req, 'GET', `/entitlements/${user.id}`)).subscriptions.map((one) => one.slug);
    const offer = (plan) => {
      if (has?.includes(plan.slug)) return html`<p>You have this plan.</p>`;
      // The key goes with the form, so that a second click is the same wish and not a second subscription.
      return html`<form method="post" action="/subscribe"><input type="hidden" name="plan" value="${plan.slug}">
        <input type="hidden" name="key" value="${randomUUID()}"><button>Subscribe</button></form>`;
    };
    show(res, 200, 'Plans', user, plans.data.map((plan) => html`<h2>${plan.name}${plan.most_popular ? ' (most popular)' : ''}</h2>
      <p>${money(plan)}, ${plan.billing_cycle}</p><p>${plan.description}</p>
      <ul>${plan.feature_list.map((feature) => html`<li>${feature}</li>`)}</ul>${offer(plan)}`));
  },

  'GET /sign-in': async (req, res) => show(res, 200, 'Sign in', undefined,
    // A real product sends people to its identity provider here, and gets the token from there.
    html`<form method="post" action="/sign-in"><p><label>E-mail <input name="email" type="email" required></label>
      <p><label>Token <input name="token" required></label> from <code>perennial sandbox token EMAIL</code>
      <p><button>Sign in</button></form>`),

  'POST /sign-in': async (req, res, form) => {
    const body = { access_token: form.get('token') ?? '', email: form.get('email') ?? '' };
    keep(res, await ask(req, 'POST', '/authentication/sign-in', { body }).catch((error) => {
      if (error.code !== 'account_not_found') throw error;
      return ask(req, 'POST', '/authentication/sign-up', { body });
    }));
    go(res, '/');
  },

  'POST /sign-out': async (req, res) => {
    await withBearer(req, res, (bearer) => ask(req, 'POST', '/authentication/tokens/logout', { bearer }));
    forget(res);
    go(res, '/');
  },

  'POST /subscribe': async (req, res, form) => {
    const user = await userOf(req, res);
    if (!user) return go(res, '/sign-in');
    const plan = await ask(req, 'GET', `/subscription-plans/${encodeURIComponent(form.get('plan') ?? '')}`);
    const { subscriptions } = await ask(req, 'GET', `/entitlements/${user.id}`);
    if (!subscriptions.some((one) => one.subscription_plan_id === plan.id)) {
      // A real product takes money first: create it with status "pending", and make it active when it is paid.
      const body = { user_id: user.id, subscription_plan_id: plan.id };
      await ask(req, 'POST', '/subscriptions', { body, key: `subscribe ${user.id} ${form.get('key') || plan.id}` });
    }
    go(res, '/audit-log');
  },

  'GET /audit-log': async (req, res) => {
    const user = await userOf(req, res);
    if (!user) return go(res, '/sign-in');
    const { features } = await ask(req, 'GET', `/entitlements/${user.id}`);
    if (features.includes(FEATURE)) return show(res, 200, 'Audit log', user, html`<p>Nothing has happened yet.</p>`);
    show(res, 403, 'Not in your plan', user, html`<p>The audit log is not in your plan. <a href="/">See what there is.</a></p>`);
  },
};

async function formOf(req) {
  let text = '';
  for await (const chunk of req.setEncoding('utf8')) {
    text += chunk;
    if (text.length > 16_384) throw refused(413, { detail: 'That is too much.' });
  }
  return new URLSearchParams(text);
}

createServer(async (req, res) => {
  res.setHeader('cache-control', 'no-store');
  res.setHeader('content-security-policy', "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
  res.setHeader('x-content-type-options', 'nosniff');
  try {
    const page = pages[`${req.method} ${req.url.split('?')[0]}`];
    if (!page) throw refused(404, { detail: 'There is nothing here.' });
    // Forms of other sites are not this product's, whatever cookies come with them.
    if (req.method === 'POST' && !['same-origin', undefined].includes(req.headers['sec-fetch-site'])) {
      throw refused(403, { detail: 'This form was sent from somewhere else.' });
    }
    await page(req, res, req.method === 'POST' ? await formOf(req) : undefined);
  } catch (error) {
    // 401 invalid_client is this server's mistake, and nothing that a user could do better.
    if (!error.status || error.code === 'invalid_client') console.error(error);
    const { status, message } = error.status && error.code !== 'invalid_client' ? error : { status: 500, message: 'Our mistake.' };
    show(res, status, 'That did not work', undefined, html`<p>${message}</p>`);
  }
}).listen(Number(PORT), HOST, () => console.log(`product: http://${HOST}:${PORT}, sold by ${perennial}`));
