import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, body, type Schema } from '../../api/client';
import { useSession } from '../../api/session';
import { cliOf } from '../../lib/commands';
import { pluralize } from '../../lib/money';
import { words } from '../../lib/words';
import { ActionDialog } from '../../ui/ActionDialog';
import { ScopedButton } from '../../ui/Button';
import { Checks } from '../../ui/Checks';
import { Choice } from '../../ui/Choice';
import { Field } from '../../ui/Field';
import { Once } from '../../ui/Once';
import { ListTable } from '../../ui/ListTable';
import { Empty, Page } from '../../ui/Page';
import { Badge, GLYPH } from '../../ui/Status';
import type { Column } from '../../ui/Table';
import { Id, Time } from '../../ui/values';

const route = getRouteApi('/api-keys');

type Client = Schema<'Client'>;
type Kind = Schema<'ClientKind'>;
type Opened = { action: 'create' } | { action: 'rotate' | 'disable'; client: Client };

const clientsQuery = (cursor: string | undefined) =>
  queryOptions({
    queryKey: ['clients', cursor],
    queryFn: () => body(api.GET('/clients', { params: { query: { limit: 50, cursor } } })),
    placeholderData: keepPreviousData,
  });

/** Returns the items of a text field that takes several. */
const itemsOf = (text: string) => text.split(/[\s,]+/).filter(Boolean);

/** The applications that call the API, and their keys. */
export default function ApiKeys() {
  const { cursor } = route.useSearch();
  const list = useQuery(clientsQuery(cursor));
  const [opened, setOpened] = useState<Opened | null>(null);
  const close = () => setOpened(null);
  const reasonOf = ({ disabled_at }: Client) => (disabled_at ? 'The key is disabled.' : null);

  const columns: Column<Client>[] = [
    {
      header: 'Client',
      placeholder: 140,
      cell: (client) => (
        <>
          <span className="strong">{client.name || 'Without name'}</span> <Id id={client.id} />
        </>
      ),
    },
    { header: 'Kind', cell: ({ kind }) => words(kind) },
    {
      header: 'Keys',
      cell: ({ disabled_at, live_values }) =>
        disabled_at ? (
          <Badge tone="gray" glyph={GLYPH.cross}>
            Disabled
          </Badge>
        ) : (
          <Badge tone="green" glyph={GLYPH.dot}>
            {pluralize(live_values, 'valid key')}
          </Badge>
        ),
    },
    {
      header: 'Scopes',
      cell: ({ scopes }) => (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the scopes appear on focus
        <span className="number-link nowrap" data-tip={scopes.join(', ') || 'none'} tabIndex={0}>
          {pluralize(scopes.length, 'scope')}
        </span>
      ),
    },
    {
      header: 'Used from',
      minor: true,
      cell: ({ allow_addresses, allowed_origins }) =>
        [...allow_addresses, ...allowed_origins].join(', ') || <span className="muted">any</span>,
    },
    { header: 'Created', cell: ({ created_at }) => <Time at={created_at} format="day" /> },
    {
      header: 'Actions',
      align: 'end',
      placeholder: 130,
      cell: (client) => (
        <span className="row-actions">
          <ScopedButton
            scope="clients:write"
            reason={reasonOf(client)}
            aria-label={`Rotate the key of ${client.name || client.id}`}
            onClick={() => setOpened({ action: 'rotate', client })}
          >
            Rotate
          </ScopedButton>
          <ScopedButton
            scope="clients:write"
            reason={reasonOf(client)}
            aria-label={`Disable ${client.name || client.id}`}
            onClick={() => setOpened({ action: 'disable', client })}
          >
            Disable
          </ScopedButton>
        </span>
      ),
    },
  ];

  return (
    <Page
      title="API keys"
      subtitle="Applications that call the API, each with its key in the header client-id."
      actions={
        <ScopedButton
          scope="clients:write"
          look="primary"
          onClick={() => setOpened({ action: 'create' })}
        >
          Create a key
        </ScopedButton>
      }
    >
      <ListTable
        label="API keys"
        columns={columns}
        list={list}
        expected={3}
        empty={<Empty title="No API key">Create one for your backend.</Empty>}
      />
      {opened?.action === 'create' && <Create onClose={close} />}
      {opened?.action === 'rotate' && <Rotate client={opened.client} onClose={close} />}
      {opened?.action === 'disable' && <Disable client={opened.client} onClose={close} />}
    </Page>
  );
}

function Create({ onClose }: { onClose: () => void }) {
  const { staff_member, tenant } = useSession();
  const [name, setName] = useState('');
  const [kind, setKind] = useState<Kind>('secret');
  const [access, setAccess] = useState<'default' | 'chosen'>('default');
  const [scopes, setScopes] = useState<string[]>([]);
  const [from, setFrom] = useState('');
  const items = itemsOf(from);
  const isSecret = kind === 'secret';
  const isChosen = access === 'chosen';
  return (
    <ActionDialog<Schema<'CreatedClient'>>
      title="Create an API key"
      action="Create"
      reason={
        !name.trim()
          ? 'Enter a name.'
          : isChosen && scopes.length === 0
            ? 'Choose at least one scope.'
            : null
      }
      request={{
        method: 'POST',
        path: '/clients',
        body: {
          name: name.trim(),
          kind,
          ...(isChosen && { scopes }),
          ...(items.length > 0 && { [isSecret ? 'allow_addresses' : 'allowed_origins']: items }),
        },
      }}
      cli={cliOf(
        'client',
        'create',
        '--tenant',
        tenant.name,
        '--name',
        name.trim(),
        '--kind',
        kind,
        ...(isChosen ? scopes.flatMap((scope) => ['--scope', scope]) : []),
        ...items.flatMap((item) => [isSecret ? '--allow-address' : '--allowed-origin', item]),
      )}
      result={({ client_id }) => (
        <Once label="API key" text={client_id}>
          The API key of {name.trim()}, for the header <code>client-id</code>. It is shown only now:
          store it where the application reads its secrets.
        </Once>
      )}
      onClose={onClose}
    >
      <Field
        label="Name"
        required
        maxLength={200}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Choice<Kind>
        label="Kind"
        value={kind}
        onChange={setKind}
        options={[
          { value: 'secret', label: 'Secret', detail: 'for a server' },
          { value: 'publishable', label: 'Publishable', detail: 'for a browser or an app' },
        ]}
      />
      <Choice
        label="Scopes"
        value={access}
        onChange={setAccess}
        options={[
          {
            value: 'default',
            label: 'Default of its kind',
            detail: 'without API keys, identity providers, staff, health and the sandbox',
          },
          { value: 'chosen', label: 'Only these' },
        ]}
      />
      {isChosen && (
        <Checks
          label="Allowed"
          values={scopes}
          onChange={setScopes}
          options={staff_member.scopes.map((scope) => ({ value: scope, label: scope }))}
        />
      )}
      <Field
        label={isSecret ? 'Networks' : 'Web origins'}
        placeholder={isSecret ? '10.0.0.0/8' : 'https://app.example.com'}
        hint={
          isSecret
            ? 'Requests must come from these, separated by spaces. Empty: from anywhere.'
            : 'Web pages that may use the key, separated by spaces.'
        }
        autoComplete="off"
        value={from}
        onChange={(event) => setFrom(event.target.value)}
      />
    </ActionDialog>
  );
}

const GRACE = [
  { value: '86400', label: '24 hours', flag: '24h' },
  { value: '3600', label: '1 hour', flag: '1h' },
  { value: '0', label: 'Not at all', flag: '0s', detail: 'for a key that leaked' },
];

function Rotate({ client, onClose }: { client: Client; onClose: () => void }) {
  const [seconds, setSeconds] = useState('86400');
  const flag = GRACE.find(({ value }) => value === seconds)?.flag ?? '24h';
  return (
    <ActionDialog<Schema<'RotatedApiKey'>>
      title={`Rotate the key of ${client.name || client.id}`}
      action="Rotate"
      request={{
        method: 'POST',
        path: `/clients/${client.id}/rotate`,
        body: { grace_period_seconds: Number(seconds) },
      }}
      cli={cliOf('client', 'rotate', client.id, '--keep-old', flag)}
      result={({ client_id, old_value_expires_at }) => (
        <Once label="API key" text={client_id}>
          The new API key, which is shown only now. The previous key works until{' '}
          <Time at={old_value_expires_at} format="moment" />.
        </Once>
      )}
      onClose={onClose}
    >
      <Choice
        label="The previous key keeps working for"
        value={seconds}
        options={GRACE}
        onChange={setSeconds}
      />
    </ActionDialog>
  );
}

function Disable({ client, onClose }: { client: Client; onClose: () => void }) {
  return (
    <ActionDialog
      title={`Disable ${client.name || client.id}`}
      action="Disable for good"
      look="danger"
      request={{ method: 'DELETE', path: `/clients/${client.id}` }}
      cli={cliOf('client', 'disable', client.id)}
      onClose={onClose}
    >
      <p>
        Requests with its keys fail with 401 within a second. A disabled client cannot be enabled
        again: create another one.
      </p>
    </ActionDialog>
  );
}
