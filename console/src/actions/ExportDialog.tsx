import type { Schema } from '../api/client';
import { sendForText } from '../lib/commands';
import { download } from '../lib/csv';
import { ActionDialog } from '../ui/ActionDialog';
import { useCli } from './useCli';

type Props = { user: Schema<'User'>; onClose: () => void };

/** Downloads everything that is stored about a subscriber. */
export default function ExportDialog({ user, onClose }: Props) {
  const cliLine = useCli();
  return (
    <ActionDialog<string>
      title="Export the subscriber's data"
      action="Export"
      request={{ method: 'POST', path: `/users/${user.id}/export` }}
      cli={cliLine('user', 'export', user.id)}
      sendRequest={sendForText}
      onDone={(text) => download(`${user.id}.json`, text, 'application/json')}
      onClose={onClose}
    >
      <p>
        Downloads the identities, sessions, subscriptions, payments and all events as JSON, for
        example for a request for access to personal data. The event log records that you did it.
      </p>
    </ActionDialog>
  );
}
