import { useState } from 'react';
import type { Schema } from '../../../api/client';
import { useCli } from '../../../actions/useCli';
import { useNow } from '../../../lib/clock';
import { pluralize } from '../../../lib/money';
import { DAY } from '../../../lib/time';
import { ActionDialog } from '../../../ui/ActionDialog';
import { Field } from '../../../ui/Field';
import type { Endpoint } from './queries';

/** The value of a field for a time in UTC, exact to a minute. */
const fieldTime = (at: number) => new Date(at).toISOString().slice(0, 16);
const utc = (field: string) => `${field}:00Z`;

/** Sends the events of a time range again. */
export function ReplayRange({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const cliLine = useCli();
  const now = useNow();
  const [from, setFrom] = useState(() =>
    fieldTime(endpoint.failing_since ? Date.parse(endpoint.failing_since) : now - DAY),
  );
  const [to, setTo] = useState('');
  const [onlyFailed, setOnlyFailed] = useState(false);
  const body = {
    from: utc(from),
    ...(to && { to: utc(to) }),
    ...(onlyFailed && { only_failed: true }),
  };
  return (
    <ActionDialog<Schema<'WebhookReplay'>>
      title="Replay a time range"
      action="Replay"
      reason={
        !from ? 'Enter when the range starts.' : to && to <= from ? 'It ends too early.' : null
      }
      request={{ method: 'POST', path: `/webhook-endpoints/${endpoint.id}/replays`, body }}
      cli={cliLine(
        'webhook-endpoint',
        'replay',
        endpoint.id,
        '--from',
        body.from,
        ...(to ? ['--to', utc(to)] : []),
        ...(onlyFailed ? ['--only-failed'] : []),
      )}
      onClose={onClose}
      result={({ after_position, last_position }) => (
        <p>
          The replay has started. The range has{' '}
          {pluralize(last_position - after_position, 'position')} of the log; those whose type the
          endpoint receives are sent after the new events.
        </p>
      )}
    >
      <p>
        Sends the recorded events of a time range again, after those that are new. Receivers
        recognize a repeated event by its <code>webhook-id</code>.
      </p>
      <Field
        label="From (UTC)"
        type="datetime-local"
        required
        value={from}
        onChange={(event) => setFrom(event.target.value)}
      />
      <Field
        label="Until (UTC)"
        type="datetime-local"
        value={to}
        onChange={(event) => setTo(event.target.value)}
        hint="Empty means now."
      />
      <label className="check-field">
        <input
          type="checkbox"
          checked={onlyFailed}
          onChange={(event) => setOnlyFailed(event.target.checked)}
        />
        Only events whose attempts were given up
      </label>
    </ActionDialog>
  );
}
