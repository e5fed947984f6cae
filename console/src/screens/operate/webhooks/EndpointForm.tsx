import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useCli } from '../../../actions/useCli';
import type { ChangeRequest } from '../../../lib/commands';
import { ActionDialog } from '../../../ui/ActionDialog';
import { CopyText } from '../../../ui/Commands';
import { Field } from '../../../ui/Field';
import { EVENT_PATTERNS } from '../events/words';
import type { Endpoint } from './queries';
import './webhooks.css';
import { ORDERS } from './words';

type Values = { url: string; description: string; types: string; order: Endpoint['order'] };

const typesOf = (text: string) => text.split(/[\s,]+/).filter(Boolean);

function Fields({ values, set }: { values: Values; set: (values: Values) => void }) {
  return (
    <>
      <Field
        label="URL"
        type="url"
        required
        value={values.url}
        placeholder="https://example.com/webhooks"
        onChange={(event) => set({ ...values, url: event.target.value })}
      />
      <Field
        label="Description"
        value={values.description}
        maxLength={200}
        onChange={(event) => set({ ...values, description: event.target.value })}
      />
      <Field
        label="Event types"
        value={values.types}
        placeholder="All events"
        list="event-types"
        onChange={(event) => set({ ...values, types: event.target.value })}
        hint="Separated by commas, such as subscription.*, payment.created. Empty means all."
      />
      <datalist id="event-types">
        {EVENT_PATTERNS.map((pattern) => (
          <option key={pattern}>{pattern}</option>
        ))}
      </datalist>
      <fieldset className="choices">
        <legend className="strong">Order</legend>
        {Object.entries(ORDERS).map(([order, meaning]) => (
          <label key={order} className="check-field">
            <input
              type="radio"
              name="order"
              checked={values.order === order}
              onChange={() => set({ ...values, order: order as Endpoint['order'] })}
            />
            {meaning}
          </label>
        ))}
      </fieldset>
    </>
  );
}

const refusal = ({ url }: Values) => (URL.canParse(url) ? null : 'Enter a URL first.');

/** The secret of an endpoint, which is shown once. */
export function Secret({ secret }: { secret: string }) {
  return (
    <>
      <p>Receivers verify requests with this secret. Copy it now: it is not shown again.</p>
      <CopyText label="secret" text={secret} />
    </>
  );
}

export function CreateEndpoint({ onClose }: { onClose: () => void }) {
  const cliLine = useCli();
  const navigate = useNavigate();
  const [created, setCreated] = useState<string>();
  const [values, set] = useState<Values>({ url: '', description: '', types: '', order: 'none' });
  const types = typesOf(values.types);
  const body = {
    url: values.url,
    ...(values.description && { description: values.description }),
    ...(types.length > 0 && { event_types: types }),
    ...(values.order !== 'none' && { order: values.order }),
  };
  const cli = cliLine(
    'webhook-endpoint',
    'create',
    '--url',
    values.url,
    ...(values.description ? ['--description', values.description] : []),
    ...(types.length > 0 ? ['--event-types', types.join(',')] : []),
    ...(values.order === 'none' ? [] : ['--order', values.order]),
  );
  return (
    <ActionDialog<Endpoint & { secret: string }>
      title="Add endpoint"
      action="Add endpoint"
      reason={refusal(values)}
      request={{ method: 'POST', path: '/webhook-endpoints', body }}
      cli={cli}
      onDone={({ id }) => setCreated(id)}
      onClose={() => {
        onClose();
        if (created) void navigate({ to: '/webhooks', search: { endpoint: created } });
      }}
      result={({ secret }) => <Secret secret={secret} />}
    >
      <p className="muted">The endpoint receives the events that happen from now on.</p>
      <Fields values={values} set={set} />
    </ActionDialog>
  );
}

type ChangeProps = { endpoint: Endpoint; onClose: () => void };

export function ChangeEndpoint({ endpoint, onClose }: ChangeProps) {
  const cliLine = useCli();
  const before: Values = {
    url: endpoint.url,
    description: endpoint.description ?? '',
    types: endpoint.event_types.join(', '),
    order: endpoint.order,
  };
  const [values, set] = useState(before);
  const types = typesOf(values.types);
  const changes = {
    url: values.url !== before.url,
    description: values.description !== before.description,
    types: types.join() !== endpoint.event_types.join(),
    order: values.order !== before.order,
  };
  const body: ChangeRequest['body'] = {
    ...(changes.url && { url: values.url }),
    ...(changes.description && { description: values.description || null }),
    ...(changes.types && { event_types: types }),
    ...(changes.order && { order: values.order }),
  };
  const cli = cliLine(
    'webhook-endpoint',
    'update',
    endpoint.id,
    ...(changes.url ? ['--url', values.url] : []),
    ...(changes.description ? ['--description', values.description] : []),
    ...(changes.types ? ['--event-types', types.join(',')] : []),
    ...(changes.order ? ['--order', values.order] : []),
  );
  const isChanged = Object.values(changes).some(Boolean);
  return (
    <ActionDialog
      title="Change endpoint"
      action="Save changes"
      reason={isChanged ? refusal(values) : 'Nothing is changed.'}
      request={{ method: 'PUT', path: `/webhook-endpoints/${endpoint.id}`, body }}
      cli={cli}
      onClose={onClose}
    >
      <Fields values={values} set={set} />
    </ActionDialog>
  );
}
