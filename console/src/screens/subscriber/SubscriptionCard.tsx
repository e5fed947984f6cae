import type { Schema } from '../../api/client';
import { SubscriptionActions } from '../../actions/SubscriptionActions';
import { Sentence } from '../../ui/Sentence';
import { Status, SUBSCRIPTION_STATUS } from '../../ui/Status';
import { Id, Money } from '../../ui/values';
import { Lifeline } from './Lifeline';

type Props = {
  timeline: Schema<'SubscriptionTimeline'>;
  subscription: Schema<'Subscription'> | undefined;
};

/** A subscription: its status in words, what happens next, what fixes it, and its lifeline. */
export function SubscriptionCard({ timeline, subscription }: Props) {
  const { tone } = SUBSCRIPTION_STATUS[timeline.status];
  return (
    <article className={`card subscription-card edge-${tone}`} id={timeline.id}>
      <div className="subscription-words">
        <h3 className="subscription-title">
          <Status status={timeline.status} suspended={subscription?.suspended} />
          <span>{timeline.subscription_plan_slug}</span>
          {subscription?.price != null && (
            <span className="subscription-price">
              <Money value={subscription.price} currency={subscription.currency} />{' '}
              {subscription.billing_cycle}
              {subscription.quantity > 1 && ` × ${subscription.quantity}`}
            </span>
          )}
          <Id id={timeline.id} />
        </h3>
        <p>
          <Sentence text={timeline.sentence} />
        </p>
        {timeline.next.length > 0 && (
          <p>
            {timeline.next.map(({ sentence }) => (
              <span key={sentence}>
                <Sentence text={sentence} />{' '}
              </span>
            ))}
          </p>
        )}
        {timeline.fixes.length > 0 && (
          <ul className="fixes">
            {timeline.fixes.map(({ sentence }) => (
              <li key={sentence}>
                <Sentence text={sentence} />
              </li>
            ))}
          </ul>
        )}
        {timeline.deleted_at && (
          <p className="muted">
            Deleted <Sentence text={timeline.deleted_at.slice(0, 16).replace('T', ' ')} />.
          </p>
        )}
        {subscription && <SubscriptionActions subscription={subscription} fixes={timeline.fixes} />}
      </div>
      {timeline.segments.length > 0 && <Lifeline timeline={timeline} />}
    </article>
  );
}
