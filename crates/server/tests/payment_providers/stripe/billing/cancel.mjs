/** Ends a subscription immediately. */
export function cancelSubscription(ledger, subscription, reason = 'cancellation_requested', details = {}) {
  const now = ledger.now();
  return ledger.change(
    subscription,
    {
      status: subscription.status === 'incomplete' ? 'incomplete_expired' : 'canceled',
      canceled_at: subscription.canceled_at ?? now,
      ended_at: now,
      cancellation: { comment: null, feedback: null, ...subscription.cancellation, ...details, reason },
    },
    'customer.subscription.deleted',
  );
}
