// The texts of the mails. Values are escaped in HTML, so markup in the name of a plan is shown as text.

/** @typedef {import('@perennial/client').Schemas} Schemas */
/** @typedef {{ subject: string, text: string, html: string }} Mail */

/** @param {string} text */
const escapeHtml = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** @param {number} amount @param {string} currency */
const money = (amount, currency) => new Intl.NumberFormat('en', { style: 'currency', currency }).format(amount);

/** @param {string} timestamp */
const date = (timestamp) => new Intl.DateTimeFormat('en', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(timestamp));

/**
 * Creates a mail from paragraphs, with a link at the end.
 *
 * @param {string} subject @param {string[]} paragraphs @param {{ label: string, url: string }} link
 * @returns {Mail}
 */
function compose(subject, paragraphs, { label, url }) {
  const body = paragraphs.map((paragraph) => `<p>${escapeHtml(paragraph)}</p>`).join('\n');
  return {
    // A header has one line.
    subject: subject.replace(/\s+/g, ' '),
    text: `${paragraphs.join('\n\n')}\n\n${label}: ${url}\n`,
    html: `<!doctype html>
<html lang="en">
<meta charset="utf-8">
${body}
<p><a href="${escapeHtml(url)}">${escapeHtml(label)}</a></p>
</html>
`,
  };
}

/** @param {Schemas['Subscription']} subscription @param {Schemas['Plan']} plan @param {{ appName: string, accountUrl: string }} settings */
export function trialEnding(subscription, plan, { appName, accountUrl }) {
  const ends = date(subscription.renews_at ?? '');
  const paragraphs = [`Your trial of ${plan.name} ends on ${ends}.`];
  if (subscription.price !== null && subscription.price > 0 && subscription.currency) {
    const amount = money(subscription.price * subscription.quantity, subscription.currency);
    paragraphs.push(`From that day it costs ${amount} (${subscription.billing_cycle}). To end it, cancel before that day.`);
  }
  return compose(`Your trial of ${plan.name} ends on ${ends}`, paragraphs, { label: `Your ${appName} account`, url: accountUrl });
}

/** @param {Schemas['Subscription']} subscription @param {Schemas['Plan']} plan @param {{ appName: string, accountUrl: string }} settings */
export function pastDue(subscription, plan, { appName, accountUrl }) {
  const { amount_due, currency } = subscription;
  const amount = amount_due && currency ? ` of ${money(amount_due, currency)}` : '';
  const paragraphs = [
    `We have not received the payment${amount} for ${plan.name}.`,
    'Please pay soon to keep your access. If you have paid in the meantime, ignore this mail.',
  ];
  return compose(`Your payment for ${plan.name} is late`, paragraphs, { label: `Pay in your ${appName} account`, url: accountUrl });
}

/** @param {Schemas['Payment']} payment @param {Schemas['Plan']} plan @param {{ appName: string, accountUrl: string }} settings */
export function receipt(payment, plan, { appName, accountUrl }) {
  const amount = money(payment.amount, payment.currency);
  const paidOn = date(payment.paid_at ?? payment.created_at);
  const paragraphs = [`Thank you. We have received ${amount} for ${plan.name} on ${paidOn}.`];
  if (payment.period_starts_at && payment.period_ends_at) {
    paragraphs.push(`It pays the time from ${date(payment.period_starts_at)} to ${date(payment.period_ends_at)}.`);
  }
  paragraphs.push(`Payment: ${payment.id}`);
  return compose(`Receipt for ${plan.name}`, paragraphs, { label: `Your ${appName} account`, url: accountUrl });
}
