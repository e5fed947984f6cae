import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { webhookEndpointsQuery } from '../../../api/records';
import { ScopedButton } from '../../../ui/Button';
import { Empty, Page } from '../../../ui/Page';
import { Table, type Column } from '../../../ui/Table';
import { Time } from '../../../ui/values';
import { CreateEndpoint } from './EndpointForm';
import type { Endpoint } from './queries';
import { EndpointState, typesText } from './words';

const columns: Column<Endpoint>[] = [
  {
    header: 'Endpoint',
    placeholder: 240,
    cell: (endpoint) => (
      <>
        <Link to="/webhooks" search={{ endpoint: endpoint.id }} className="row-link" data-row>
          {endpoint.url}
        </Link>
        {endpoint.description && <div className="muted small">{endpoint.description}</div>}
      </>
    ),
  },
  {
    header: 'State',
    placeholder: 140,
    cell: (endpoint) => <EndpointState endpoint={endpoint} />,
  },
  { header: 'Events', cell: typesText },
  {
    header: 'Created',
    align: 'end',
    minor: true,
    cell: (endpoint) => <Time at={endpoint.created_at} />,
  },
];

/** Failing endpoints come first, then disabled ones. */
const rank = (endpoint: Endpoint) =>
  endpoint.status === 'disabled' ? 1 : endpoint.failing_since ? 0 : 2;

/** The endpoints that receive events. */
export function EndpointList() {
  const [isCreating, setCreating] = useState(false);
  const list = useQuery(webhookEndpointsQuery);
  const create = (
    <ScopedButton scope="webhooks:write" look="primary" onClick={() => setCreating(true)}>
      Add endpoint
    </ScopedButton>
  );
  return (
    <Page
      title="Webhooks"
      subtitle="Where events are sent as signed HTTP requests, at least once each."
      actions={create}
    >
      <Table
        label="Webhook endpoints"
        columns={columns}
        rows={list.data?.data.toSorted((a, b) => rank(a) - rank(b))}
        rowKey={({ id }) => id}
        error={list.error}
        retry={() => void list.refetch()}
        expected={3}
        empty={
          <Empty title="No endpoint yet">
            An endpoint is a URL of yours that receives events as they happen. Try one locally with{' '}
            <code>perennial listen</code>.
          </Empty>
        }
      />
      {isCreating && <CreateEndpoint onClose={() => setCreating(false)} />}
    </Page>
  );
}
