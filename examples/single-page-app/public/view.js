// Shows records. Text is set with textContent, so that markup in a plan's name is shown and not run.

const date = (text) => new Intl.DateTimeFormat(undefined, { dateStyle: 'long' }).format(new Date(text));

// For display only: a float is not exact enough for calculations.
const money = (amount, currency) => new Intl.NumberFormat(undefined, { style: 'currency', currency }).format(amount);

const STATUS = {
  pending: 'Waiting for payment', on_trial: 'Trial', active: 'Active', paused: 'Paused', past_due: 'Payment overdue',
  unpaid: 'Unpaid', cancelled: 'Cancelled', expired: 'Ended',
};

// What users can change themselves. Perennial decides; these only choose the button.
const CAN_CANCEL = ['pending', 'on_trial', 'active', 'past_due', 'unpaid'];

/** The date until which a cancelled subscription, or one that is about to be, gives access. */
export const accessUntil = ({ ends_at, paid_until, renews_at }) => {
  const end = ends_at ?? paid_until ?? renews_at;
  return end && date(end);
};

function nextStep(subscription) {
  const { status, renews_at } = subscription;
  if (status === 'cancelled') return `You have access until ${accessUntil(subscription)}. It will not renew.`;
  if (status === 'expired') return `Ended on ${accessUntil(subscription)}.`;
  if (status === 'on_trial' && renews_at) return `Your trial ends on ${date(renews_at)}.`;
  if (status === 'active' && renews_at) return `Renews on ${date(renews_at)}.`;
  return '';
}

/** Returns an article for a subscription and its plan. `onCancel` and `onUndo` are called by its button. */
export function subscriptionCard(subscription, plan, { onCancel, onUndo }) {
  const card = document.getElementById('subscription').content.cloneNode(true).firstElementChild;
  const part = (name) => card.querySelector(`[data-part=${name}]`);
  const { status, price, currency, billing_cycle } = subscription;
  part('plan').textContent = plan.name;
  part('status').textContent = subscription.suspended ? 'Suspended' : STATUS[status];
  part('status').dataset.status = status;
  part('price').textContent = price === null ? billing_cycle : `${money(price, currency)}, ${billing_cycle}`;
  part('next').textContent = nextStep(subscription);
  const button = part('action');
  if (status === 'cancelled') {
    button.textContent = 'Keep my subscription';
    button.addEventListener('click', () => onUndo(button));
  } else if (CAN_CANCEL.includes(status)) {
    button.textContent = 'Cancel subscription';
    button.classList.add('quiet');
    button.addEventListener('click', () => onCancel(button));
  } else {
    button.remove();
  }
  return card;
}
