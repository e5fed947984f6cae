import type { Schema } from '../api/client';
import { pluralize } from '../lib/money';
import { DAY } from '../lib/time';
import { Time } from '../ui/values';

type Subscription = Schema<'Subscription'>;
type Step = Schema<'TimelineStep'>;

/** What happens next with a subscription, in few words. The step is that of the forecast. */
export function Next(props: { subscription: Subscription; step: Step | undefined; now: number }) {
  const { subscription, step, now } = props;
  if (!step) return <span className="muted">…</span>;
  if (!step.at) return <span title={step.sentence}>{waitingWords(subscription, now)}</span>;
  return (
    <span title={step.sentence}>
      {stepWords(subscription, step, now)} <Time at={step.at} format="day" />
    </span>
  );
}

function stepWords({ status, starts_at }: Subscription, step: Step, now: number): string {
  if (Date.parse(starts_at) > now) return 'starts';
  switch (step.status) {
    case 'expired':
      return status === 'past_due' || status === 'unpaid' ? 'expires' : 'ends';
    case 'unpaid':
      return 'loses access';
    case 'past_due':
      return status === 'on_trial' ? 'trial ends, unpaid' : 'past due';
    case 'paused':
      return 'covered until';
    default:
      return status === 'on_trial' ? 'trial ends' : 'renews';
  }
}

/** A payment or a request decides what happens next. */
function waitingWords({ status, renews_at }: Subscription, now: number): string {
  switch (status) {
    case 'past_due':
    case 'unpaid': {
      const late = renews_at ? Math.floor((now - Date.parse(renews_at)) / DAY) : 0;
      return late > 0 ? `${pluralize(late, 'day')} late` : 'late since today';
    }
    case 'expired':
      return 'expired';
    case 'paused':
      return 'paused until it is resumed';
    case 'pending':
      return 'waiting for the first payment';
    default:
      return 'no renewal';
  }
}
