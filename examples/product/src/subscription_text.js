// A subscription in the words of the product. The functions use no clock: Perennial has applied the time to the status.
import { day, money, perCycle } from './format.js';

/**
 * @typedef {import('@perennial/client').Schemas} Schemas
 *
 * @typedef {object} SubscriptionText
 * @property {string} badge The status in a word or two.
 * @property {'good' | 'warning' | 'neutral'} tone
 * @property {string} sentence
 */

/**
 * @param {Schemas['Subscription']} subscription
 * @param {string} plan The name of its plan.
 * @returns {SubscriptionText}
 */
export function describe(subscription, plan) {
  const { status, renews_at, ends_at, suspended } = subscription;
  if (suspended) {
    return {
      badge: 'Suspended',
      tone: 'warning',
      sentence: `Your access to ${plan} is suspended. Please write to us.`,
    };
  }
  switch (status) {
    case 'active':
      if (ends_at) return { badge: 'Ends soon', tone: 'neutral', sentence: `You have ${plan} until ${day(ends_at)}.` };
      return { badge: 'Active', tone: 'good', sentence: `You have ${plan}. ${nextPayment(subscription)}` };
    case 'on_trial':
      return {
        badge: 'Free trial',
        tone: 'good',
        sentence: renews_at ? `You can try ${plan} for free until ${day(renews_at)}.` : `You can try ${plan} for free.`,
      };
    case 'past_due':
      return {
        badge: 'Payment failed',
        tone: 'warning',
        sentence: `The last payment for ${plan} failed. You still have access while we try again. Please check your card.`,
      };
    case 'unpaid':
      return {
        badge: 'Unpaid',
        tone: 'warning',
        sentence: `We could not collect the payment for ${plan}, so your access has ended. Update your card to continue.`,
      };
    case 'cancelled':
      return {
        badge: 'Cancelled',
        tone: 'neutral',
        sentence: ends_at
          ? `You have cancelled ${plan}. You have access until ${day(ends_at)}, and you will not be charged again.`
          : `You have cancelled ${plan}. You will not be charged again.`,
      };
    case 'paused':
      return {
        badge: 'Paused',
        tone: 'neutral',
        sentence: `${plan} is paused. You are not charged, and have no access.`,
      };
    case 'pending':
      return { badge: 'Waiting', tone: 'neutral', sentence: `${plan} starts when your payment arrives.` };
    case 'expired':
      return {
        badge: 'Ended',
        tone: 'neutral',
        sentence: `Your ${plan} plan ended${ends_at ? ` on ${day(ends_at)}` : ''}. Choose a plan to continue.`,
      };
  }
}

/** @param {Schemas['Subscription']} subscription */
function nextPayment({ renews_at, price, currency, quantity, billing_cycle }) {
  if (billing_cycle === 'lifetime') return 'It does not end.';
  // After a cancellation was undone, until the payment provider has reported the date.
  if (!renews_at) return 'It renews automatically.';
  if (price === null || currency === null) return `It renews on ${day(renews_at)}.`;
  return `The next payment of ${money(price * quantity, currency)} is on ${day(renews_at)}.`;
}

/** Returns the price, such as "$9 per month".
 * @param {Schemas['Subscription']} subscription
 */
export function priceText({ price, currency, quantity, billing_cycle }) {
  return price === null || currency === null ? '' : `${money(price * quantity, currency)} ${perCycle(billing_cycle)}`;
}
