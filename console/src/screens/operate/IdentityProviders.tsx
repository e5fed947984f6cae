import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api, body } from '../../api/client';
import { useSession } from '../../api/session';
import { cliOf } from '../../lib/commands';
import { ActionDialog } from '../../ui/ActionDialog';
import { ScopedButton } from '../../ui/Button';
import { Choice } from '../../ui/Choice';
import { ListTable } from '../../ui/ListTable';
import { Empty, Page } from '../../ui/Page';
import type { Column } from '../../ui/Table';
import { Time } from '../../ui/values';
import { ProviderDialog, type Provider } from './identity-providers/ProviderDialog';

const route = getRouteApi('/identity-providers');

type Opened = { action: 'add' } | { action: 'change' | 'remove'; provider: Provider };

const providersQuery = (cursor: string | undefined) =>
  queryOptions({
    queryKey: ['identity-providers', cursor],
    queryFn: () =>
      body(api.GET('/identity-providers', { params: { query: { limit: 50, cursor } } })),
    placeholderData: keepPreviousData,
  });

/** The OpenID providers whose tokens are accepted. */
export default function IdentityProviders() {
  const { cursor } = route.useSearch();
  const list = useQuery(providersQuery(cursor));
  const [opened, setOpened] = useState<Opened | null>(null);
  const close = () => setOpened(null);

  const columns: Column<Provider>[] = [
    {
      header: 'Issuer',
      placeholder: 200,
      cell: ({ issuer }) => <span className="strong break">{issuer}</span>,
    },
    { header: 'Verified by', cell: ({ verify }) => verify },
    {
      header: 'Audiences',
      cell: ({ audiences, accept_any_audience }) =>
        accept_any_audience ? <span className="muted">any</span> : audiences.join(', '),
    },
    { header: 'Since', cell: ({ created_at }) => <Time at={created_at} format="day" /> },
    {
      header: 'Actions',
      align: 'end',
      placeholder: 130,
      cell: (provider) => (
        <span className="row-actions">
          <ScopedButton
            scope="identity_providers:write"
            aria-label={`Change ${provider.issuer}`}
            onClick={() => setOpened({ action: 'change', provider })}
          >
            Change
          </ScopedButton>
          <ScopedButton
            scope="identity_providers:write"
            aria-label={`Remove ${provider.issuer}`}
            onClick={() => setOpened({ action: 'remove', provider })}
          >
            Remove
          </ScopedButton>
        </span>
      ),
    },
  ];

  return (
    <Page
      title="Identity providers"
      subtitle="OpenID providers whose tokens sign your users in."
      actions={
        <ScopedButton
          scope="identity_providers:write"
          look="primary"
          onClick={() => setOpened({ action: 'add' })}
        >
          Add a provider
        </ScopedButton>
      }
    >
      <ListTable
        label="Identity providers"
        columns={columns}
        list={list}
        expected={2}
        empty={
          <Empty title="No identity provider yet">
            Users sign in with the tokens of a provider such as Keycloak, Auth0 or Google.{' '}
            <a href="/docs/how-to/connect-an-identity-provider">How to connect one</a>
          </Empty>
        }
      />
      {opened?.action === 'add' && <ProviderDialog onClose={close} />}
      {opened?.action === 'change' && <ProviderDialog provider={opened.provider} onClose={close} />}
      {opened?.action === 'remove' && <Remove provider={opened.provider} onClose={close} />}
    </Page>
  );
}

function Remove({ provider, onClose }: { provider: Provider; onClose: () => void }) {
  const { tenant } = useSession();
  const [sessions, setSessions] = useState<'keep' | 'end'>('keep');
  const query = sessions === 'end' ? '?end_sessions=true' : '';
  return (
    <ActionDialog
      title={`Remove ${provider.issuer}`}
      action="Remove"
      look="danger"
      request={{ method: 'DELETE', path: `/identity-providers/${provider.id}${query}` }}
      cli={cliOf(
        'provider',
        'remove',
        '--tenant',
        tenant.name,
        provider.issuer,
        `--${sessions}-sessions`,
      )}
      onClose={onClose}
    >
      <p>Its tokens are no longer accepted. Users can then sign in with other providers only.</p>
      <Choice
        label="Sessions of users who signed in with it"
        value={sessions}
        onChange={setSessions}
        options={[
          { value: 'keep', label: 'Stay', detail: 'until they expire' },
          { value: 'end', label: 'End now', detail: 'as for a compromised provider' },
        ]}
      />
    </ActionDialog>
  );
}
