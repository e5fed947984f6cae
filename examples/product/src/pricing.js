import { randomUUID } from 'node:crypto';
import { money, perCycle } from './format.js';
import { html } from './html.js';

/**
 * @typedef {import('@perennial/client').Perennial} Perennial
 * @typedef {import('@perennial/client').Schemas} Schemas
 * @typedef {import('./app.js').Handler} Handler
 */

/**
 * The pricing page: the active plans, and for a signed-in user which of them is theirs.
 *
 * @param {Perennial} perennial
 * @returns {Handler}
 */
export function pricingPage(perennial) {
  return async (visit) => {
    const [user, { data: plans }] = await Promise.all([
      visit.user(),
      perennial.get('/subscription-plans', { query: { is_active: 'true', sort: 'tier', limit: 12 } }),
    ]);
    const grants = user ? (await perennial.entitlements(user.id)).subscriptions : [];
    const owned = new Set(grants.map((grant) => grant.subscription_plan_id));
    return {
      title: 'Say it in fewer words',
      lead: html`Tersely reads your draft, and shows which sentences are too long and which words say nothing. Counting is free. Choose
        a plan for the rest, and cancel at any time.`,
      isWide: true,
      body: html`<h2 class="visually-hidden">Plans</h2>
<ul class="plans">${plans.map((plan) => planCard(plan, owned))}</ul>
<p class="note">You pay on the page of our payment provider. This site never sees your card.</p>`,
    };
  };
}

/**
 * @param {Schemas['Plan']} plan
 * @param {Set<string>} owned The plans of the user.
 */
function planCard(plan, owned) {
  return html`<li class="card plan ${plan.most_popular ? 'popular' : ''}">
  <h3>${plan.name}${plan.most_popular && html` <span class="badge good">Most popular</span>`}</h3>
  <p class="price"><strong>${money(plan.price, plan.currency)}</strong> ${perCycle(plan.billing_cycle)}</p>
  <p>${plan.description}</p>
  <ul class="features">${plan.feature_list.map((feature) => html`<li>${feature}</li>`)}</ul>
  ${offer(plan, owned)}
</li>`;
}

/**
 * @param {Schemas['Plan']} plan
 * @param {Set<string>} owned
 */
function offer(plan, owned) {
  if (owned.has(plan.id)) return html`<p class="owned">Your plan. <a href="/account">Manage it</a></p>`;
  // A second subscription would be charged in addition. The payment provider's portal changes plans.
  if (owned.size > 0) return html`<p class="owned"><a href="/account">Switch in your account</a></p>`;
  return html`<form method="post" action="/checkout">
    <input type="hidden" name="plan" value="${plan.slug}">
    <input type="hidden" name="key" value="${randomUUID()}">
    <button class="${plan.most_popular ? '' : 'secondary'}">Choose ${plan.name}</button>
  </form>`;
}
