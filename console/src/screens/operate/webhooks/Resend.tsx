import { useCli } from '../../../actions/useCli';
import type { Schema } from '../../../api/client';
import { ActionDialog } from '../../../ui/ActionDialog';
import type { Attempt, Endpoint } from './queries';

type Props = { attempt: Attempt; endpoint: Endpoint; onClose: () => void };

/** Sends the event of an attempt again. */
export default function Resend({ attempt, endpoint, onClose }: Props) {
  const cliLine = useCli();
  const { event_id } = attempt;
  return (
    <ActionDialog<Schema<'WebhookReplay'>>
      title={`Resend ${attempt.event_type}`}
      action="Resend"
      request={{
        method: 'POST',
        path: `/webhook-endpoints/${endpoint.id}/replays`,
        body: { event_id },
      }}
      cli={cliLine('webhook-endpoint', 'replay', endpoint.id, '--event', event_id)}
      onClose={onClose}
      result={() => <p>The event is sent again, after those that are new.</p>}
    >
      <p className="break">
        Sends the event to {endpoint.url} again, even if it was delivered. The receiver recognizes
        it by its <code>webhook-id</code> <code>{event_id}</code>.
      </p>
    </ActionDialog>
  );
}
