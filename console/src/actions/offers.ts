import type { Schema } from '../api/client';

type Subscription = Schema<'Subscription'>;

export type SubscriptionAction =
  | 'record_payment'
  | 'undo_cancellation'
  | 'resume'
  | 'reopen'
  | 'lift_suspension'
  | 'change_plan'
  | 'extend'
  | 'pause'
  | 'suspend'
  | 'cancel'
  | 'end';

export type Offer = {
  action: SubscriptionAction;
  label: string;
  scope: string;
  /** Why it is not possible now. */
  reason?: string;
};

const LIVE = new Set(['pending', 'on_trial', 'active', 'past_due', 'unpaid', 'paused']);
const PAUSABLE = new Set(['on_trial', 'active', 'past_due']);
const WITH_TIME = new Set(['on_trial', 'active', 'past_due', 'unpaid']);
const WITH_ACCESS = new Set(['on_trial', 'active', 'past_due', 'cancelled']);

const write = (action: SubscriptionAction, label: string, reason?: string): Offer => ({
  action,
  label,
  scope: 'subscriptions:write',
  reason,
});

/** Returns what the status of a subscription allows, in the order of the buttons. */
export function offersOf(subscription: Subscription): Offer[] {
  const { status, lifecycle, suspended, is_active, renews_at, ends_at } = subscription;
  const reason =
    lifecycle === 'provider'
      ? 'The payment provider runs this subscription. Change it there.'
      : undefined;
  const isLive = LIVE.has(status);
  const canExtend = lifecycle === 'managed' ? WITH_TIME.has(status) : isLive;
  return [
    { action: 'record_payment', label: 'Record payment', scope: 'payments:write' } as const,
    status === 'cancelled' && write('undo_cancellation', 'Undo cancellation'),
    status === 'paused' && write('resume', 'Resume', reason),
    status === 'expired' && write('reopen', 'Reopen', reason),
    suspended &&
      write(
        'lift_suspension',
        'Lift suspension',
        WITH_ACCESS.has(status) ? undefined : 'Possible once its status gives access again.',
      ),
    isLive && write('change_plan', 'Change plan', reason),
    (canExtend ? renews_at : status === 'cancelled' && ends_at) &&
      write('extend', 'Extend', reason),
    PAUSABLE.has(status) && write('pause', 'Pause', reason),
    is_active && write('suspend', 'Suspend'),
    isLive && write('cancel', 'Cancel'),
    status === 'cancelled' && write('end', 'End now'),
  ].filter((offer): offer is Offer => Boolean(offer));
}

/** Returns the update that undoes a cancellation. */
export function undoOf(fixes: Schema<'TimelineFix'>[]): Schema<'UpdateSubscription'> {
  const fix = fixes.find(({ action }) => action === 'undo_cancellation');
  return fix?.request?.body ?? { status: 'active' };
}
