// A page that moves time and declines cards, to see what the product does then. It exists in the sandbox only.
import { day } from '../src/format.js';
import { html } from '../src/html.js';

/**
 * @typedef {import('@perennial/client').Perennial} Perennial
 * @typedef {import('../src/app.js').Routes} Routes
 * @typedef {import('../src/visit.js').Visit} Visit
 */

/**
 * @param {Perennial} clock A client with the scope `sandbox:write`.
 * @param {string} stripeUrl
 * @param {string} perennialUrl
 * @returns {Routes}
 */
export function sandboxTools(clock, stripeUrl, perennialUrl) {
  /**
   * Sends a request to the control API of the stand-in.
   *
   * @param {string} path
   * @param {object} body
   */
  async function control(path, body) {
    const response = await fetch(`${stripeUrl}/_control${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`the stand-in responds ${response.status}: ${await response.text()}`);
  }

  /** Returns the id at Stripe of the user's newest subscription. @param {Visit} visit */
  async function stripeSubscription(visit) {
    if (!(await visit.user())) return undefined;
    const { data } = await visit.perennial.get('/subscriptions', { query: { sort: '-created_at', limit: 1 } });
    return data[0]?.external_subscription_id ?? undefined;
  }

  return {
    'GET /sandbox': async (visit) => {
      const { now } = await clock.get('/sandbox/clock');
      const subscription = await stripeSubscription(visit);
      return {
        title: 'Sandbox',
        lead: html`It is <strong>${day(now)}</strong> for Perennial and for the stand-in of Stripe. Everything that falls due happens when
          you move the time.`,
        body: html`<section class="card"><h2>Time</h2>
<p>Subscriptions renew or end, and cards are charged.</p>
<form class="actions" method="post" action="/sandbox/advance">
  <button name="by" value="1mo">A month later</button>
  <button class="secondary" name="by" value="3d">Three days later</button>
</form></section>
<section class="card"><h2>Your card</h2>${
          subscription
            ? html`<p>Decline the next payments, until you enter another card.</p>
<form class="actions" method="post" action="/sandbox/decline"><button class="secondary">Decline my card</button></form>`
            : html`<p>Buy a plan first, then you can decline the card.</p>`
        }</section>
<section class="card"><h2>Behind the product</h2>
<p><a href="${perennialUrl}/docs/">API of this sandbox</a></p></section>`,
      };
    },

    'POST /sandbox/advance': async (visit) => {
      const advance = (await visit.form()).get('by') ?? '';
      const { now } = await clock.put('/sandbox/clock', { body: { advance } });
      await control('/clock', { to: Math.floor(Date.parse(now) / 1000) });
      await control('/notifications/settle', {});
      return { redirect: '/sandbox' };
    },

    'POST /sandbox/decline': async (visit) => {
      const subscription = await stripeSubscription(visit);
      if (subscription) await control(`/payments/${subscription}/outcome`, { outcome: 'fail' });
      return { redirect: '/sandbox' };
    },
  };
}
