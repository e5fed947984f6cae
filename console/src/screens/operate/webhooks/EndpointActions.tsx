import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schema } from '../../../api/client';
import { useCli } from '../../../actions/useCli';
import { ActionDialog } from '../../../ui/ActionDialog';
import { ScopedButton } from '../../../ui/Button';
import { Time } from '../../../ui/values';
import { ChangeEndpoint, Secret } from './EndpointForm';
import type { Attempt, Endpoint } from './queries';
import { ReplayRange } from './ReplayRange';
import { AttemptBadge, outcomeOf } from './words';

const SCOPE = 'webhooks:write';

type Props = { endpoint: Endpoint; onClose: () => void };

const DIALOGS = {
  test: TestEndpoint,
  replay: ReplayRange,
  pause: PauseEndpoint,
  resume: ResumeEndpoint,
  rotate: RotateSecret,
  change: ChangeEndpoint,
  delete: DeleteEndpoint,
};

/** What staff can do with an endpoint. */
export function EndpointActions({ endpoint }: { endpoint: Endpoint }) {
  const [open, setOpen] = useState<keyof typeof DIALOGS | null>(null);
  const Dialog = open && DIALOGS[open];
  const isDisabled = endpoint.status === 'disabled';
  const button = (name: keyof typeof DIALOGS, label: string, reason?: string | null) => (
    <ScopedButton scope={SCOPE} reason={reason} onClick={() => setOpen(name)}>
      {label}
    </ScopedButton>
  );
  return (
    <>
      {button('test', 'Send test')}
      {button('replay', 'Replay', isDisabled ? 'Resume the endpoint first.' : null)}
      {isDisabled ? button('resume', 'Resume') : button('pause', 'Pause')}
      {button('change', 'Change')}
      {button('rotate', 'Rotate secret')}
      {button('delete', 'Delete')}
      {Dialog && <Dialog endpoint={endpoint} onClose={() => setOpen(null)} />}
    </>
  );
}

function TestEndpoint({ endpoint, onClose }: Props) {
  const cliLine = useCli();
  return (
    <ActionDialog<Attempt>
      title="Send a test message"
      action="Send test"
      request={{ method: 'POST', path: `/webhook-endpoints/${endpoint.id}/test` }}
      cli={cliLine('webhook-endpoint', 'test', endpoint.id)}
      onClose={onClose}
      result={(attempt) => (
        <p>
          <AttemptBadge attempt={attempt} /> {outcomeOf(attempt)} after {attempt.duration_ms} ms.
        </p>
      )}
    >
      <p className="break">
        Sends one signed message of the type <code>webhook_endpoint.test</code> to {endpoint.url}.
      </p>
    </ActionDialog>
  );
}

function PauseEndpoint({ endpoint, onClose }: Props) {
  const cliLine = useCli();
  return (
    <ActionDialog
      title="Pause the endpoint"
      action="Pause"
      request={{
        method: 'PUT',
        path: `/webhook-endpoints/${endpoint.id}`,
        body: { status: 'disabled' },
      }}
      cli={cliLine('webhook-endpoint', 'disable', endpoint.id)}
      onClose={onClose}
    >
      <p>No event is sent until you resume it. It then continues with the first event it missed.</p>
    </ActionDialog>
  );
}

function ResumeEndpoint({ endpoint, onClose }: Props) {
  const cliLine = useCli();
  return (
    <ActionDialog
      title="Resume the endpoint"
      action="Resume"
      request={{ method: 'POST', path: `/webhook-endpoints/${endpoint.id}/enable` }}
      cli={cliLine('webhook-endpoint', 'enable', endpoint.id)}
      onClose={onClose}
    >
      <p>
        {endpoint.disabled_at && (
          <>
            Paused since <Time at={endpoint.disabled_at} format="moment" />.{' '}
          </>
        )}
        The events since then are sent first.
      </p>
    </ActionDialog>
  );
}

function RotateSecret({ endpoint, onClose }: Props) {
  const cliLine = useCli();
  return (
    <ActionDialog<Schema<'WebhookSecret'>>
      title="Rotate the secret"
      action="Rotate secret"
      request={{ method: 'POST', path: `/webhook-endpoints/${endpoint.id}/rotate-secret` }}
      cli={cliLine('webhook-endpoint', 'rotate-secret', endpoint.id)}
      onClose={onClose}
      result={({ secret, previous_secret_expires_at }) => (
        <>
          <Secret secret={secret} />
          {previous_secret_expires_at && (
            <p>
              Requests are also signed with the old secret until{' '}
              <Time at={previous_secret_expires_at} format="moment" />.
            </p>
          )}
        </>
      )}
    >
      <p>
        Creates a new secret and shows it once. Requests are signed with the old one too for 24
        hours, so that receivers can change theirs in time.
      </p>
    </ActionDialog>
  );
}

function DeleteEndpoint({ endpoint, onClose }: Props) {
  const cliLine = useCli();
  const navigate = useNavigate();
  return (
    <ActionDialog
      title="Delete the endpoint"
      action="Delete endpoint"
      look="danger"
      request={{ method: 'DELETE', path: `/webhook-endpoints/${endpoint.id}` }}
      cli={cliLine('webhook-endpoint', 'delete', endpoint.id)}
      onDone={() => void navigate({ to: '/webhooks', search: {} })}
      onClose={onClose}
    >
      <p className="break">
        {endpoint.url} receives no more events, and events that wait for a retry are dropped. Its
        position and secret are lost.
      </p>
    </ActionDialog>
  );
}
