import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useCli } from '../../../actions/useCli';
import { exact } from '../../../lib/time';
import { ActionDialog } from '../../../ui/ActionDialog';
import { ScopedButton } from '../../../ui/Button';
import { Dialog } from '../../../ui/Dialog';
import { Fact, Facts } from '../../../ui/Facts';
import { Failure, Skeleton } from '../../../ui/Page';
import { Id, Time } from '../../../ui/values';
import { notificationQuery, type Notification } from './queries';
import { NOTIFICATION_STATES, NotificationBadge, objectText } from './words';

type Props = { id: string; onClose: () => void };

/** A notification: what has become of it, why, and a way to process it again. */
export default function NotificationDialog({ id, onClose }: Props) {
  const [isReplaying, setReplaying] = useState(false);
  const { data, error, refetch } = useQuery(notificationQuery(id));
  if (isReplaying && data) {
    return <Replay notification={data} onClose={() => setReplaying(false)} />;
  }
  return (
    <Dialog open onClose={onClose} title={data?.type || 'Notification'} width="wide">
      {error ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data ? (
        <>
          <p className="break">
            <NotificationBadge state={data.state} /> {NOTIFICATION_STATES[data.state].meaning}
          </p>
          <Details notification={data} />
          <p className="muted small">
            The body that the provider sent is stored encrypted and not shown, because it may have
            personal data.
          </p>
          <div className="dialog-actions">
            <ScopedButton
              scope="payment_accounts:write"
              look="primary"
              onClick={() => setReplaying(true)}
            >
              Process again
            </ScopedButton>
          </div>
        </>
      ) : (
        <Skeleton height={160} />
      )}
    </Dialog>
  );
}

function Details({ notification }: { notification: Notification }) {
  return (
    <Facts>
      {notification.reason && <Fact name="Reason">{notification.reason}</Fact>}
      <Fact name="Received">{exact(notification.created_at)}</Fact>
      <Fact name="Object at the provider">{objectText(notification)}</Fact>
      <Fact name="Event at the provider">
        <code>{notification.event_id}</code>
      </Fact>
      <Fact name="Failed attempts">
        {notification.attempts}
        {notification.next_attempt_at && (
          <>
            , next <Time at={notification.next_attempt_at} />
          </>
        )}
      </Fact>
      <Fact name="Notification">
        <Id id={notification.id} />
      </Fact>
      <Fact name="Account">
        <Id id={notification.payment_account_id} />
      </Fact>
    </Facts>
  );
}

function Replay({ notification, onClose }: { notification: Notification; onClose: () => void }) {
  const cliLine = useCli();
  return (
    <ActionDialog<Notification>
      title={`Process ${notification.type || 'the notification'} again`}
      action="Process again"
      request={{ method: 'POST', path: `/payment-notifications/${notification.id}/replay` }}
      cli={cliLine('payment-account', 'replay', notification.id)}
      onClose={onClose}
    >
      <p>
        The stored notification is read again with the account’s current settings, and its object is
        compared with the provider’s. A notification that was applied before changes nothing.
      </p>
    </ActionDialog>
  );
}
