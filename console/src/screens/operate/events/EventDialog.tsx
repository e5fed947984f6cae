import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { exact } from '../../../lib/time';
import { words } from '../../../lib/words';
import { Json } from '../../../ui/Commands';
import { Dialog } from '../../../ui/Dialog';
import { Fact, Facts } from '../../../ui/Facts';
import { Empty, Failure, Skeleton } from '../../../ui/Page';
import { Id } from '../../../ui/values';
import { Actor } from './Actor';
import { eventQuery, type LoggedEvent } from './log';
import { SubjectLink } from './SubjectLink';
import { changesOf, valueText } from './words';

type Props = { id: string; listed: LoggedEvent | undefined; onClose: () => void };

/** An event by its id, which need not be in the list. */
export default function EventDialog({ id, listed, onClose }: Props) {
  const read = useQuery({ ...eventQuery(id), enabled: !listed });
  const event = listed ?? read.data;
  if (event) return <EventDetails event={event} onClose={onClose} />;
  return (
    <Dialog open onClose={onClose} title="Event">
      {read.error ? (
        <Failure error={read.error} retry={() => void read.refetch()} />
      ) : event === null ? (
        <Empty title="No event has this id">
          Or it was removed from the log at the end of its retention.
        </Empty>
      ) : (
        <Skeleton height={120} />
      )}
    </Dialog>
  );
}

type DetailsProps = { event: LoggedEvent; onClose: () => void };

/** Who changed what and when, the fields before and after, and the record. */
function EventDetails({ event, onClose }: DetailsProps) {
  const changes = changesOf(event);
  return (
    <Dialog open onClose={onClose} title={event.type} width="wide">
      <Facts>
        <Fact name="By">
          <Actor actor={event.actor} />
        </Fact>
        <Fact name="Took effect">{exact(event.occurred_at)}</Fact>
        <Fact name="Recorded">
          {exact(event.recorded_at)}, at position {event.position}
        </Fact>
        <Fact name="Record">
          <SubjectLink event={event} />
          {' · '}
          <Link to="/events" search={{ subject_id: event.subject_id }}>
            All its events
          </Link>{' '}
          <Id id={event.subject_id} />
        </Fact>
        <Fact name="Request">
          {event.request_id ? <Id id={event.request_id} /> : <span className="muted">none</span>}
        </Fact>
        <Fact name="Event">
          <Id id={event.id} />
        </Fact>
      </Facts>
      {changes.length > 0 && (
        <table className="table diff" aria-label="Changed fields">
          <thead>
            <tr>
              <th className="cell" scope="col">
                Changed field
              </th>
              <th className="cell" scope="col">
                Before
              </th>
              <th className="cell" scope="col">
                After
              </th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ field, before, after }) => (
              <tr key={field}>
                <th className="cell" scope="row">
                  {words(field)}
                </th>
                <td className="cell diff-before">
                  <del>{valueText(before)}</del>
                </td>
                <td className="cell diff-after">
                  <ins>{valueText(after)}</ins>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <h3>{changes.length > 0 ? 'The record after the change' : 'Data'}</h3>
      <Json label="Data of the event" value={event.data} />
    </Dialog>
  );
}
