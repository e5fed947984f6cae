import { Link } from '@tanstack/react-router';
import { useSubscriptions } from '../../../api/users';
import { Id } from '../../../ui/values';
import type { LoggedEvent } from './log';

/** A link to the screen of the record that an event is about. */
export function SubjectLink({ event }: { event: LoggedEvent }) {
  const { subject_id: id, data } = event;
  const subscriptionId = id.startsWith('pay_') ? String(data.subscription_id) : null;
  const subscriptions = useSubscriptions(subscriptionId ? [subscriptionId] : []);
  const userId = subscriptionId ? subscriptions.get(subscriptionId)?.user_id : data.user_id;
  if (id.startsWith('usr_')) return <ToSubscriber id={id} hash="" />;
  if (id.startsWith('whe_')) {
    return (
      <Link to="/webhooks" search={{ endpoint: id }}>
        Open the endpoint
      </Link>
    );
  }
  if (id.startsWith('pac_')) {
    return (
      <Link to="/payment-accounts" search={{ account: id }}>
        Open the account
      </Link>
    );
  }
  if (id.startsWith('plan_')) return <Link to="/plans">Open the plans</Link>;
  if (typeof userId !== 'string') return <Id id={id} />;
  return <ToSubscriber id={userId} hash={subscriptionId ? 'payments' : id} />;
}

function ToSubscriber({ id, hash }: { id: string; hash: string }) {
  return (
    <Link to="/subscribers/$id" params={{ id }} hash={hash}>
      Open the subscriber
    </Link>
  );
}
