import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schema } from '../api/client';
import { useCan } from '../api/session';
import { flagsOf } from '../lib/commands';
import { money } from '../lib/money';
import { ActionDialog } from '../ui/ActionDialog';
import { Button } from '../ui/Button';
import { Failure, Skeleton } from '../ui/Page';
import { Money } from '../ui/values';
import { Outcome, previewQuery } from './Outcome';
import { useCli } from './useCli';

type Subscription = Schema<'Subscription'>;

/** What each dialog of a subscription gets. */
export type DialogProps = {
  subscription: Subscription;
  fixes: Schema<'TimelineFix'>[];
  /** Opens the dialog that records a payment. */
  onPay: (amount: string) => void;
  /** Says what has been done. */
  onDone: (text: string) => void;
  onClose: () => void;
};

type Props = DialogProps & {
  title: string;
  action: string;
  look?: 'primary' | 'danger';
  dismiss?: string;
  /** The fields to send. Null while they are not complete. */
  payload: Schema<'UpdateSubscription'> | null;
  /** What is missing while there is no payload. */
  missing?: string;
  /** What was done, in words. */
  done: string;
  /** What will happen, in words, with the subscription as it will be. */
  explain?: (after: Subscription) => ReactNode;
  children?: ReactNode;
};

/** Updates a subscription, after showing what the preview of the update says. */
export function PreviewedChange(props: Props) {
  const { subscription, payload, missing, explain, onPay, onDone, done, children } = props;
  const preview = useQuery({
    ...previewQuery(subscription.id, payload ?? {}),
    enabled: payload !== null,
  });
  const canPay = useCan('payments:write');
  const cliLine = useCli();
  const { data, error } = preview;
  const currency = data?.subscription.currency ?? subscription.currency ?? '';
  const due = data && data.amount_due > 0 ? String(data.amount_due) : null;
  const reason = !payload
    ? (missing ?? 'Something is missing.')
    : error
      ? 'The service would reject this.'
      : due
        ? `A payment of ${money(due, currency)} comes first.`
        : data
          ? null
          : 'The preview is loading.';
  const request = {
    method: 'PUT' as const,
    path: `/subscriptions/${subscription.id}`,
    body: payload ?? {},
  };
  return (
    <ActionDialog
      title={props.title}
      action={props.action}
      look={props.look}
      dismiss={props.dismiss}
      reason={reason}
      request={request}
      cli={cliLine('subscription', 'update', subscription.id, ...flagsOf(request.body))}
      onDone={() => onDone(done)}
      movesFocus
      onClose={props.onClose}
    >
      {children}
      {payload && error && <Failure error={error} />}
      {payload && !data && !error && <Skeleton height={72} />}
      {payload && data && (
        <div className="preview" aria-live="polite">
          {due ? (
            <>
              <p>
                The credit does not pay for this: <Money value={due} currency={currency} /> is
                missing. This is what happens once it is paid:
              </p>
              {canPay && (
                <Button className="preview-pay" onClick={() => onPay(due)}>
                  Record a payment of {money(due, currency)}
                </Button>
              )}
            </>
          ) : (
            explain && <p>{explain(data.subscription)}</p>
          )}
          <Outcome before={subscription} preview={data} />
        </div>
      )}
    </ActionDialog>
  );
}
