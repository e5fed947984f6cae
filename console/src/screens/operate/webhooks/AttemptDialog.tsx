import { useQuery } from '@tanstack/react-query';
import { Json } from '../../../ui/Commands';
import { Dialog } from '../../../ui/Dialog';
import { Fact, Facts } from '../../../ui/Facts';
import { Empty, Failure, Skeleton } from '../../../ui/Page';
import { Id, Time } from '../../../ui/values';
import { eventQuery } from '../events/log';
import { SubjectLink } from '../events/SubjectLink';
import type { Attempt } from './queries';
import { AttemptBadge, outcomeOf } from './words';

type Props = { attempt: Attempt | undefined; onClose: () => void };

/** An attempt: the response, and the body that was sent. */
export default function AttemptDialog({ attempt, onClose }: Props) {
  return attempt ? (
    <Details attempt={attempt} onClose={onClose} />
  ) : (
    <Dialog open onClose={onClose} title="Attempt">
      <Empty title="This attempt is not on this page" />
    </Dialog>
  );
}

function Details({ attempt, onClose }: { attempt: Attempt; onClose: () => void }) {
  const event = useQuery(eventQuery(attempt.event_id));
  return (
    <Dialog open onClose={onClose} title={attempt.event_type} width="wide">
      <Facts>
        <Fact name="Result">
          <AttemptBadge attempt={attempt} />
        </Fact>
        <Fact name="Response">{outcomeOf(attempt)}</Fact>
        <Fact name="Time">
          <Time at={attempt.created_at} format="moment" />, attempt {attempt.attempt},{' '}
          {attempt.duration_ms} ms
        </Fact>
        <Fact name={<code>webhook-id</code>}>
          <Id id={attempt.event_id} />
        </Fact>
        {event.data && (
          <Fact name="Record">
            <SubjectLink event={event.data} />
          </Fact>
        )}
      </Facts>
      <h3>Body that was sent</h3>
      {event.error ? (
        <Failure error={event.error} retry={() => void event.refetch()} />
      ) : event.data ? (
        <Json
          label="Body that was sent"
          value={{ type: event.data.type, timestamp: event.data.occurred_at, data: event.data }}
        />
      ) : event.data === null ? (
        <p className="muted">The event is not in the log.</p>
      ) : (
        <Skeleton height={120} />
      )}
    </Dialog>
  );
}
