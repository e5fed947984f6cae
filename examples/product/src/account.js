// The account page: the subscription, its payments, and the devices. All are read on behalf of the user.
import { PerennialError } from '@perennial/client';
import { deviceList } from './devices.js';
import { day, money } from './format.js';
import { html } from './html.js';
import { describe, priceText } from './subscription_text.js';
import { HttpError } from './visit.js';

/**
 * @typedef {import('@perennial/client').Perennial} Perennial
 * @typedef {import('@perennial/client').Schemas} Schemas
 * @typedef {import('./app.js').Handler} Handler
 * @typedef {import('./visit.js').Visit} Visit
 */

/** What a redirect to this page can show. The address has only the name, so that a link cannot show other text. */
const NOTICES = {
  welcome: 'Thank you. Your payment has arrived.',
  cancelled: 'Your plan is cancelled.',
  active: 'Your plan continues.',
  changed: 'Your subscription has changed in the meantime. Please check it and try again.',
  ended: 'The device is signed out.',
};

const PAYMENT_STATUSES = {
  pending: 'Pending',
  completed: 'Paid',
  failed: 'Failed',
  partially_refunded: 'Partly refunded',
  refunded: 'Refunded',
  disputed: 'Disputed',
  void: 'Canceled',
};

/**
 * @param {Perennial} perennial
 * @returns {Handler}
 */
export function accountPage(perennial) {
  return async (visit) => {
    const user = await visit.user();
    if (!user) return { redirect: '/sign-in?next=/account' };
    const [current, payments, sessions] = await Promise.all([
      readCurrent(visit, perennial),
      visit.perennial.get('/payments', { query: { sort: '-created_at', limit: 12 } }),
      visit.perennial.get('/authentication/tokens'),
    ]);
    const notice = NOTICES[/** @type {keyof typeof NOTICES} */ (visit.url.searchParams.get('notice') ?? '')];
    return {
      title: 'Account',
      lead: html`Signed in as <strong>${user.email}</strong>`,
      body: html`${notice && html`<p class="notice" role="status">${notice}</p>`}
<section class="card" aria-labelledby="plan">${current ? subscriptionCard(current) : emptyCard()}</section>
<section aria-labelledby="payments"><h2 id="payments">Payments</h2>${paymentTable(payments.data)}</section>
<section aria-labelledby="devices"><h2 id="devices">Devices</h2>${deviceList(sessions.data)}</section>`,
    };
  };
}

/**
 * Asks before the cancellation, and says what follows.
 *
 * @param {Perennial} perennial
 * @returns {Handler}
 */
export function cancelPage(perennial) {
  return async (visit) => {
    if (!(await visit.user())) return { redirect: '/sign-in?next=/account' };
    const current = await readCurrent(visit, perennial);
    if (!current) return { redirect: '/account' };
    const { status, renews_at } = current.subscription;
    const effect =
      status === 'past_due' || !renews_at
        ? 'Your access ends immediately.'
        : `You keep your access until ${day(renews_at)}. Until then, you can undo it.`;
    return {
      title: `Cancel ${current.planName}?`,
      lead: html`${effect} You will not be charged again.`,
      body: html`<div class="actions">${changeForm(current, '/account/cancel', 'Cancel my plan', 'danger')}
<a class="button secondary" href="/account">Keep it</a></div>`,
    };
  };
}

/**
 * Cancels, or undoes a cancellation. Perennial notifies the payment provider.
 *
 * @param {Perennial} perennial
 * @param {'cancelled' | 'active'} status
 * @returns {Handler}
 */
export function changeStatus(perennial, status) {
  return async (visit) => {
    if (!(await visit.user())) return { redirect: '/sign-in?next=/account' };
    const form = await visit.form();
    const path = { id: form.get('id') ?? '' };
    try {
      // Read on behalf of the user: a subscription of another user is 404.
      await visit.perennial.get('/subscriptions/{id}', { path });
      await perennial.put('/subscriptions/{id}', {
        path,
        body: { status },
        // Of the subscription that the user saw. If it has changed since, the user decides again.
        ifMatch: form.get('etag') ?? '',
      });
    } catch (error) {
      if (!(error instanceof PerennialError)) throw error;
      if (error.status === 404 || error.code === 'invalid_id')
        throw new HttpError(404, 'You have no such subscription.');
      if (error.status !== 409 && error.status !== 412) throw error;
      return { redirect: '/account?notice=changed' };
    }
    return { redirect: `/account?notice=${status}` };
  };
}

/** @typedef {{ subscription: Schemas['Subscription'], etag: string, planName: string }} Current */

/**
 * Reads the subscription to show: the newest one that gives access, or else the newest one.
 *
 * @param {Visit} visit
 * @param {Perennial} perennial
 * @returns {Promise<Current | undefined>}
 */
async function readCurrent(visit, perennial) {
  const { data } = await visit.perennial.get('/subscriptions', { query: { sort: '-created_at', limit: 20 } });
  const listed = data.find((subscription) => subscription.is_active) ?? data[0];
  if (!listed) return undefined;
  // `raw` returns the response too, which has the entity tag.
  const path = { id: listed.id };
  const { data: subscription, response } = await visit.perennial.raw.GET('/subscriptions/{id}', { params: { path } });
  if (!subscription) return undefined;
  const slug = subscription.subscription_plan_slug;
  // A deleted plan has no name any more.
  const plan = await perennial.get('/subscription-plans/{slug}', { path: { slug } }).catch(() => undefined);
  return { subscription, etag: response.headers.get('etag') ?? '', planName: plan?.name ?? slug };
}

/** @param {Current} current */
function subscriptionCard(current) {
  const { subscription, planName } = current;
  const { badge, tone, sentence } = describe(subscription, planName);
  const { status } = subscription;
  return html`<h2 id="plan">${planName} <span class="badge ${tone}">${badge}</span></h2>
<p class="sentence">${sentence}</p>
<p class="muted">${status !== 'expired' && priceText(subscription)}</p>
<div class="actions">
  ${['past_due', 'unpaid'].includes(status) && portalForm('Update my card', '')}
  ${status === 'cancelled' && changeForm(current, '/account/resume', 'Keep my plan', '')}
  ${status === 'expired' && html`<a class="button" href="/">See the plans</a>`}
  ${['active', 'on_trial'].includes(status) && portalForm('Change card or plan', 'secondary')}
  ${['active', 'on_trial', 'past_due'].includes(status) && html`<a class="button quiet" href="/account/cancel">Cancel</a>`}
</div>`;
}

const emptyCard = () => html`<h2 id="plan">No plan yet</h2>
<p class="sentence">You can count words for free. Choose a plan to find long sentences and filler words.</p>
<div class="actions"><a class="button" href="/">See the plans</a></div>`;

/**
 * @param {Current} current
 * @param {string} action
 * @param {string} label
 * @param {string} style
 */
const changeForm = ({ subscription, etag }, action, label, style) => html`<form method="post" action="${action}">
  <input type="hidden" name="id" value="${subscription.id}"><input type="hidden" name="etag" value="${etag}">
  <button class="${style}">${label}</button>
</form>`;

/**
 * @param {string} label
 * @param {string} style
 */
const portalForm = (label, style) =>
  html`<form method="post" action="/billing-portal"><button class="${style}">${label}</button></form>`;

/** @param {Schemas['Payment'][]} payments */
function paymentTable(payments) {
  if (payments.length === 0) return html`<p class="muted">No payments yet.</p>`;
  return html`<table>
<thead><tr><th scope="col">Date</th><th scope="col">Status</th><th scope="col" class="number">Amount</th></tr></thead>
<tbody>${payments.map(
    ({ paid_at, created_at, status, amount, currency }) => html`<tr><td>${day(paid_at ?? created_at)}</td>
  <td>${PAYMENT_STATUSES[status]}</td><td class="number">${money(amount, currency)}</td></tr>`,
  )}</tbody></table>`;
}
