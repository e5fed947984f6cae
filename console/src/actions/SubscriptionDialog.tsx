import type { Schema } from '../api/client';
import { Sentence } from '../ui/Sentence';
import { CancelDialog } from './CancelDialog';
import { ChangePlanDialog } from './ChangePlanDialog';
import { ExtendDialog } from './ExtendDialog';
import { undoOf, type SubscriptionAction } from './offers';
import { PreviewedChange, type DialogProps } from './PreviewedChange';
import { RecordPaymentDialog } from './RecordPaymentDialog';

type Props = DialogProps & { action: SubscriptionAction; amount?: string };

/** The dialog of an action on a subscription. */
export default function SubscriptionDialog({ action, amount, ...props }: Props) {
  const { subscription, fixes } = props;
  const isManaged = subscription.lifecycle === 'managed';
  const fix = fixes.find((candidate) => candidate.action === action);
  const fixed = fix && { explain: () => <Sentence text={fix.sentence} /> };
  const payload: Schema<'UpdateSubscription'> = fix?.request?.body ?? { status: 'active' };
  switch (action) {
    case 'record_payment':
      return <RecordPaymentDialog {...props} amount={amount} />;
    case 'change_plan':
      return <ChangePlanDialog {...props} />;
    case 'extend':
      return <ExtendDialog {...props} />;
    case 'cancel':
    case 'end':
      return <CancelDialog {...props} />;
    case 'reopen':
      // In managed billing the credit pays the period; otherwise a date is needed.
      if (!isManaged) return <ExtendDialog {...props} />;
      return (
        <PreviewedChange
          {...props}
          title="Reopen the subscription"
          action="Reopen"
          done="Reopened."
          payload={payload}
          {...fixed}
        />
      );
    case 'undo_cancellation':
      return (
        <PreviewedChange
          {...props}
          title="Undo the cancellation"
          action="Undo cancellation"
          done="Cancellation undone."
          payload={undoOf(fixes)}
          {...fixed}
        />
      );
    case 'resume':
      return (
        <PreviewedChange
          {...props}
          title="Resume the subscription"
          action="Resume"
          done="Resumed."
          payload={payload}
          {...fixed}
        />
      );
    case 'pause':
      return (
        <PreviewedChange
          {...props}
          title="Pause the subscription"
          action="Pause"
          done="Paused."
          payload={{ status: 'paused' }}
          explain={() =>
            `Access stops now, until the subscription is resumed.${
              isManaged
                ? ' No period is charged while it is paused; time that is paid runs on.'
                : ''
            }`
          }
        />
      );
    case 'suspend':
      return (
        <PreviewedChange
          {...props}
          title="Suspend access"
          action="Suspend"
          look="danger"
          done="Suspended."
          payload={{ is_active: false }}
          explain={() =>
            `Access stops now, in any status, until the suspension is lifted.${
              isManaged ? ' Periods continue to be charged.' : ''
            }`
          }
        />
      );
    case 'lift_suspension':
      return (
        <PreviewedChange
          {...props}
          title="Lift the suspension"
          action="Lift suspension"
          done="Suspension lifted."
          payload={{ is_active: true }}
          {...fixed}
        />
      );
  }
}
