import { useState } from 'react';
import { Choice } from '../ui/Choice';
import { Time } from '../ui/values';
import { PreviewedChange, type DialogProps } from './PreviewedChange';

/** Cancels at the end of the period, or ends a subscription now. */
export function CancelDialog(props: DialogProps) {
  const { status, billing_cycle, lifecycle } = props.subscription;
  const isCancelled = status === 'cancelled';
  const canRunOut = ['active', 'on_trial'].includes(status) && billing_cycle !== 'lifetime';
  const [when, setWhen] = useState<'end' | 'now'>(canRunOut ? 'end' : 'now');
  const isNow = when === 'now';
  return (
    <PreviewedChange
      {...props}
      title={isCancelled ? 'End the subscription now' : 'Cancel the subscription'}
      action={isNow ? 'End now' : 'Cancel subscription'}
      look="danger"
      dismiss="Keep it"
      done={isNow ? 'Ended.' : 'Cancelled.'}
      payload={{ status: isNow ? 'expired' : 'cancelled' }}
      explain={({ ends_at }) => (
        <>
          {isNow || !ends_at ? (
            'The subscription ends now, and access with it. It does not renew.'
          ) : (
            <>
              The subscription does not renew. Access stays until{' '}
              <Time at={ends_at} format="moment" />, and the cancellation can be undone until then.
            </>
          )}
          {lifecycle === 'managed' &&
            isNow &&
            ' Credit stays in the ledger; refund a payment to return it.'}
          {lifecycle === 'provider' &&
            ' If a payment account with an API key runs the subscription, the payment provider cancels it too.'}
        </>
      )}
    >
      {canRunOut && (
        <Choice
          label="When does it end?"
          value={when}
          onChange={setWhen}
          options={[
            { value: 'end', label: 'At the end of the period' },
            { value: 'now', label: 'Now' },
          ]}
        />
      )}
    </PreviewedChange>
  );
}
