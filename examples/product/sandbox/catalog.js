// The plans of the product, and their prices at Stripe. In production, create both once: see "Sell with Stripe".
import { FEATURES } from '../src/check_page.js';

/** @typedef {import('@perennial/client').Perennial} Perennial */

const { longSentences, fillerWords, readability } = FEATURES;

const PLANS = /** @type {const} */ ([
  {
    name: 'Plus',
    slug: 'plus',
    price: 6,
    billing_cycle: 'monthly',
    tier: 1,
    description: 'For people who write every day.',
    features: [longSentences, fillerWords],
  },
  {
    name: 'Pro',
    slug: 'pro',
    price: 14,
    billing_cycle: 'monthly',
    tier: 2,
    most_popular: true,
    description: 'For people who publish.',
    features: [longSentences, fillerWords, readability],
  },
  {
    name: 'Pro yearly',
    slug: 'pro-yearly',
    price: 140,
    billing_cycle: 'yearly',
    tier: 2,
    description: 'Pro for a year, two months free.',
    features: [longSentences, fillerWords, readability],
  },
]);
const INTERVALS = { monthly: 'month', yearly: 'year' };

/**
 * Creates a price at Stripe and a plan at Perennial for each entry.
 *
 * @param {Perennial} perennial
 * @param {string} stripeUrl
 * @param {string} stripeKey
 */
export async function createPlans(perennial, stripeUrl, stripeKey) {
  for (const { features, ...plan } of PLANS) {
    const price = await createPrice(stripeUrl, stripeKey, {
      currency: 'usd',
      unit_amount: String(plan.price * 100),
      'recurring[interval]': INTERVALS[plan.billing_cycle],
      'product_data[name]': plan.name,
    });
    await perennial.post('/subscription-plans', {
      body: { ...plan, features: features.join(', '), variants: [price] },
    });
  }
}

/**
 * @param {string} stripeUrl
 * @param {string} stripeKey
 * @param {Record<string, string>} fields
 * @returns {Promise<string>} The id of the price.
 */
async function createPrice(stripeUrl, stripeKey, fields) {
  const headers = { authorization: `Bearer ${stripeKey}` };
  const response = await fetch(`${stripeUrl}/v1/prices`, {
    method: 'POST',
    headers,
    body: new URLSearchParams(fields),
  });
  if (!response.ok) throw new Error(`Stripe responds ${response.status}: ${await response.text()}`);
  return /** @type {{ id: string }} */ (await response.json()).id;
}
