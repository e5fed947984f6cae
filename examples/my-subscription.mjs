// A "my subscription" page, rendered on the server: what the signed-in user has, until when, and what they paid.
//
//   URL=http://127.0.0.1:8080 CLIENT_ID=prn_sk_… node my-subscription.mjs
//
// Needs Node.js 20 and no packages. CLIENT_ID is a secret or a publishable client: every request carries the user's access
// token as well, so that it can read that user's records only.
//
// The access token is in the HttpOnly cookie `access`, which your sign-in sets. To try the page without a sign-in:
// curl -b "access=$ACCESS_TOKEN" http://127.0.0.1:3002/my-subscription
import { createServer } from 'node:http';

const { URL: perennial = 'http://127.0.0.1:8080', CLIENT_ID, HOST = '127.0.0.1', PORT = '3002' } = process.env;
const SIGN_IN = '/sign-in';
if (!CLIENT_ID) throw new Error('set CLIENT_ID');

/** Reads from Perennial on behalf of a user. Returns undefined if there is no such record. */
async function read(path, bearer) {
  const headers = { 'client-id': CLIENT_ID, authorization: `Bearer ${bearer}` };
  const response = await fetch(new URL(path, perennial), { headers, signal: AbortSignal.timeout(15_000) });
  const json = await response.json();
  if (response.status === 404) return undefined;
  if (!response.ok) throw Object.assign(new Error(json.detail), { code: json.code });
  return json;
}

/** Reads everything that the page shows. */
async function loadAccount(bearer) {
  const [subscriptions, payments, entitlements] = await Promise.all([
    read('/subscriptions?sort=-created_at&limit=200', bearer),
    read('/payments?sort=-created_at&limit=10', bearer),
    read('/entitlements', bearer),
  ]);
  const slugs = [...new Set(subscriptions.data.map((subscription) => subscription.subscription_plan_slug))];
  const plans = await Promise.all(slugs.map((slug) => read(`/subscription-plans/${encodeURIComponent(slug)}`, bearer)));
  const bySlug = new Map(slugs.map((slug, i) => [slug, plans[i]]));
  const named = subscriptions.data.map((subscription) => {
    const { subscription_plan_slug: slug, subscription_plan_id: id } = subscription;
    // A deleted plan is not found, and another plan can have its slug by now.
    const plan = bySlug.get(slug);
    return { ...subscription, planName: plan?.id === id ? plan.name : slug };
  });
  return { subscriptions: named, payments: payments.data, entitlements };
}

const STATUS = {
  pending: 'Waiting for your payment', on_trial: 'Free trial', active: 'Active', paused: 'Paused', past_due: 'Payment overdue',
  unpaid: 'Unpaid', cancelled: 'Cancelled', expired: 'Ended',
};

const day = (time) => new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(time));
// For display only: a float is not exact enough for calculations.
const money = (amount, currency) => new Intl.NumberFormat('en', { style: 'currency', currency }).format(amount);

/** Says what happens next to a subscription, and when. */
function nextDate({ status, starts_at, renews_at, ends_at }) {
  if (status === 'expired') return ends_at ? `ended on ${day(ends_at)}` : '';
  if (new Date(starts_at) > new Date()) return `starts on ${day(starts_at)}`;
  if (ends_at) return `until ${day(ends_at)}`;
  if (status === 'pending' || status === 'paused' || status === 'unpaid') return '';
  if (!renews_at) return 'no end';
  return status === 'on_trial' ? `free until ${day(renews_at)}` : `renews on ${day(renews_at)}`;
}

const escaped = (text) => String(text ?? '').replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

function page({ subscriptions, payments, entitlements }) {
  const plan = (s) => `<li><strong>${escaped(s.planName)}</strong>${s.quantity > 1 ? ` × ${s.quantity}` : ''},
    ${money(s.price, s.currency)} ${escaped(s.billing_cycle)}. ${STATUS[s.status]}${s.suspended ? ' (suspended)' : ''}
    <small>${nextDate(s)}</small></li>`;
  const payment = (p) => `<tr><td>${day(p.paid_at ?? p.created_at)}<td>${money(p.amount, p.currency)}<td>${escaped(p.status)}
    ${p.refunded_amount ? ` (${money(p.refunded_amount, p.currency)} refunded)` : ''}`;
  const nodes = entitlements.node_quota < 0 ? 'unlimited' : entitlements.node_quota;
  const access = entitlements.active
    ? `<p>Tier ${entitlements.tier}, nodes: ${nodes}${entitlements.until ? `, until ${day(entitlements.until)}` : ''}</p>
       <ul>${entitlements.features.map((feature) => `<li>${escaped(feature)}</li>`).join('')}</ul>`
    : '<p>You have no access at the moment.</p>';
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>My subscription</title><h1>My subscription</h1>
<ul>${subscriptions.map(plan).join('') || '<li>You have no subscription.</li>'}</ul>
<h2>What you can use</h2>${access}
<h2>Payments</h2><table>${payments.map(payment).join('') || '<tr><td>None yet'}</table></html>`;
}

const server = createServer(async (req, res) => {
  // The page has personal data, so no cache may keep it.
  const headers = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' };
  const send = (status, html) => res.writeHead(status, headers).end(html);
  const signIn = () => res.writeHead(303, { location: SIGN_IN }).end();
  if (req.method !== 'GET' || req.url !== '/my-subscription') return send(404, 'Not found');
  // Perennial validates the token; here it must only be safe in a header.
  const bearer = /(?:^|; *)access=([\w.~-]+)(?:;|$)/.exec(req.headers.cookie ?? '')?.[1];
  if (!bearer) return signIn();
  try {
    send(200, page(await loadAccount(bearer)));
  } catch (error) {
    // The access token has expired or its session has ended. A real product first tries its refresh token, as ./product does.
    if (error.code === 'invalid_token') return signIn();
    // Any other error, such as 503, does not sign the user out.
    console.error(error.cause?.message ?? error.message);
    send(503, 'Please try again in a moment.');
  }
});
server.listen(Number(PORT), HOST, () => console.log(`my subscription: http://${HOST}:${PORT}/my-subscription`));
