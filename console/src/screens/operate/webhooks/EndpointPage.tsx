import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { ButtonLink, ScopedButton } from '../../../ui/Button';
import { ListTable } from '../../../ui/ListTable';
import { Empty, Failure, Page, Section, Skeleton } from '../../../ui/Page';
import type { Column } from '../../../ui/Table';
import { Id, Time } from '../../../ui/values';
import { EndpointActions } from './EndpointActions';
import { attemptsQuery, endpointQuery, type Attempt, type Endpoint } from './queries';
import { AttemptBadge, EndpointState, ORDERS, outcomeOf, typesText } from './words';

const AttemptDialog = lazy(() => import('./AttemptDialog'));
const Resend = lazy(() => import('./Resend'));

const route = getRouteApi('/webhooks');

const attemptKey = ({ event_id, attempt }: Attempt) => `${event_id}.${attempt}`;
/** The type of test messages, which are not in the log. */
const TEST_TYPE = 'webhook_endpoint.test';

/** Returns why an attempt's event cannot be sent again. */
function resendRefusal(attempt: Attempt, endpoint: Endpoint | undefined): string | null {
  if (attempt.event_type === TEST_TYPE) return 'A test message is not an event. Send another test.';
  return endpoint?.status === 'disabled' ? 'Resume the endpoint first.' : null;
}

/** An endpoint, and the attempts to deliver events to it. */
export function EndpointPage({ id }: { id: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [resent, setResent] = useState<Attempt | null>(null);
  const endpoint = useQuery(endpointQuery(id));
  const attempts = useQuery(attemptsQuery(id, search.cursor));
  const rows = attempts.data?.data;

  if (endpoint.error) {
    return (
      <Page title="Webhook endpoint">
        <Failure error={endpoint.error} retry={() => void endpoint.refetch()} />
        <ButtonLink to="/webhooks" search={{}}>
          All endpoints
        </ButtonLink>
      </Page>
    );
  }

  const columns: Column<Attempt>[] = [
    {
      header: 'Event',
      placeholder: 160,
      cell: (attempt) => (
        <Link
          to="."
          search={((before: object) => ({ ...before, attempt: attemptKey(attempt) })) as never}
          className="row-link nowrap"
          resetScroll={false}
          data-row
        >
          {attempt.event_type}
        </Link>
      ),
    },
    { header: 'Result', cell: (attempt) => <AttemptBadge attempt={attempt} /> },
    { header: 'Response', placeholder: 180, cell: outcomeOf },
    { header: 'Attempt', align: 'end', minor: true, cell: ({ attempt }) => attempt },
    { header: 'Duration', align: 'end', minor: true, cell: (row) => `${row.duration_ms} ms` },
    { header: 'Time', align: 'end', cell: (attempt) => <Time at={attempt.created_at} /> },
    {
      header: 'Actions',
      align: 'end',
      cell: (attempt) => (
        <ScopedButton
          scope="webhooks:write"
          reason={resendRefusal(attempt, endpoint.data)}
          onClick={() => setResent(attempt)}
        >
          Resend
        </ScopedButton>
      ),
    },
  ];

  return (
    <Page
      title={endpoint.data?.url ?? 'Webhook endpoint'}
      subtitle={
        endpoint.data ? (
          <>
            <EndpointState endpoint={endpoint.data} />
            <Id id={id} />
            {endpoint.data.description && (
              <span className="break">{endpoint.data.description}</span>
            )}
          </>
        ) : (
          <Skeleton height={20} width={260} />
        )
      }
      actions={endpoint.data && <EndpointActions endpoint={endpoint.data} />}
    >
      {endpoint.data && (
        <p className="muted">
          Receives: {typesText(endpoint.data)}. {ORDERS[endpoint.data.order]}{' '}
          <Link to="/events" search={{ subject_id: id }}>
            Who changed it
          </Link>
        </p>
      )}
      <Section title="Attempts" aside={<span className="muted">Kept for 30 days</span>}>
        <ListTable
          label="Attempts"
          columns={columns}
          list={attempts}
          rowKey={attemptKey}
          empty={
            <Empty title="Nothing was sent yet">
              The next event that matches is sent within a second. Send a test message to try it
              now.
            </Empty>
          }
        />
      </Section>
      <Suspense>
        {search.attempt && rows && (
          <AttemptDialog
            attempt={rows.find((attempt) => attemptKey(attempt) === search.attempt)}
            onClose={() =>
              void navigate({
                search: (before) => ({ ...before, attempt: undefined }),
                resetScroll: false,
              })
            }
          />
        )}
        {resent && endpoint.data && (
          <Resend attempt={resent} endpoint={endpoint.data} onClose={() => setResent(null)} />
        )}
      </Suspense>
    </Page>
  );
}
