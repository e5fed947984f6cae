// Buying a plan: from the pricing page to the payment provider, and back.
import { html } from './html.js';

/**
 * @typedef {import('@perennial/client').Perennial} Perennial
 * @typedef {import('./app.js').Handler} Handler
 * @typedef {import('./webhooks.js').UserChanges} UserChanges
 */

/** How long the page after the payment waits for the subscription, in milliseconds. */
const CONFIRMATION_TIMEOUT = 10_000;

/**
 * Sends the user to the payment provider's page.
 *
 * @param {Perennial} perennial
 * @returns {Handler}
 */
export function startCheckout(perennial) {
  return async (visit) => {
    const [user, form] = [await visit.user(), await visit.form()];
    if (!user) return { redirect: '/sign-in?next=/' };
    const checkout = await perennial.post('/checkouts', {
      body: {
        user_id: user.id,
        subscription_plan_slug: form.get('plan') ?? '',
        success_url: `${visit.settings.origin}/welcome`,
      },
      // From the form, so that a double click leads to one checkout.
      idempotencyKey: `checkout ${user.id} ${form.get('key')}`,
    });
    return { redirect: checkout.url };
  };
}

/**
 * The page after the payment. The payment provider notifies Perennial, and Perennial this server. That takes about a second, so the
 * response waits for it.
 *
 * @param {Perennial} perennial
 * @param {UserChanges} changes
 * @returns {Handler}
 */
export function welcomePage(perennial, changes) {
  return async (visit) => {
    const user = await visit.user();
    if (!user) return { redirect: '/sign-in' };
    const hasAccess = async () => (await perennial.entitlements(user.id)).active;
    const done = { redirect: '/account?notice=welcome' };
    const deadline = Date.now() + CONFIRMATION_TIMEOUT;
    for (let hasChanged = true; hasChanged;) {
      const next = changes.next(user.id, deadline - Date.now());
      if (await hasAccess()) return done;
      hasChanged = await next;
    }
    // The webhook has not arrived, so the cached entitlements may be old.
    perennial.invalidateEntitlements(user.id);
    if (await hasAccess()) return done;
    return {
      title: 'We are confirming your payment',
      lead: html`This takes longer than usual. You will not be charged twice.`,
      body: html`<p><a class="button" href="/welcome">Check again</a></p>`,
    };
  };
}

/**
 * Sends the user to the payment provider's portal, to change the card or the plan.
 *
 * @param {Perennial} perennial
 * @returns {Handler}
 */
export function openBillingPortal(perennial) {
  return async (visit) => {
    const user = await visit.user();
    if (!user) return { redirect: '/sign-in?next=/account' };
    const body = { user_id: user.id, return_url: `${visit.settings.origin}/account` };
    return { redirect: (await perennial.post('/billing-portal-sessions', { body })).url };
  };
}
