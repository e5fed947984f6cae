import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { ListTable } from '../../../ui/ListTable';
import { Empty, Section } from '../../../ui/Page';
import { Chips, type Column } from '../../../ui/Table';
import { Time, TypeName } from '../../../ui/values';
import { notificationsQuery, type Account, type Notification } from './queries';
import { accountName, NOTIFICATION_STATES, NotificationBadge, objectText } from './words';

const NotificationDialog = lazy(() => import('./NotificationDialog'));

const route = getRouteApi('/payment-accounts');

/** What the providers sent to these accounts, newest first. */
export function Notifications({ accounts }: { accounts: Account[] }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useQuery(notificationsQuery(search));
  const names = new Map(accounts.map((account) => [account.id, accountName(account)]));

  const columns: Column<Notification>[] = [
    {
      header: 'Notification',
      placeholder: 180,
      cell: (notification) => (
        <Link
          to="."
          search={((before: object) => ({ ...before, notification: notification.id })) as never}
          className="row-link"
          resetScroll={false}
          data-row
        >
          <TypeName name={notification.type || 'Unreadable'} />
        </Link>
      ),
    },
    { header: 'State', cell: ({ state }) => <NotificationBadge state={state} /> },
    {
      header: 'Why',
      placeholder: 200,
      cell: ({ reason }) => reason ?? <span className="muted">–</span>,
    },
    { header: 'Object', minor: true, cell: objectText },
    ...(accounts.length > 1
      ? [
          {
            header: 'Account',
            minor: true,
            cell: (notification: Notification) => names.get(notification.payment_account_id),
          },
        ]
      : []),
    { header: 'Received', align: 'end', cell: ({ created_at }) => <Time at={created_at} /> },
  ];

  return (
    <Section title="Notifications" aside={<span className="muted">Kept for at least 90 days</span>}>
      <Chips
        label="State"
        param="state"
        value={search.state}
        options={[
          { value: undefined, label: 'All' },
          ...Object.entries(NOTIFICATION_STATES).map(([value, { word }]) => ({
            value,
            label: word,
          })),
        ]}
      />
      <ListTable
        label="Notifications"
        columns={columns}
        list={list}
        empty={
          search.state ? (
            <Empty title="No notification matches">Remove the filter to see more.</Empty>
          ) : (
            <Empty title="No notification yet">
              The provider sends one as soon as a subscription or a payment changes.
            </Empty>
          )
        }
      />
      <Suspense>
        {search.notification && (
          <NotificationDialog
            id={search.notification}
            onClose={() =>
              void navigate({
                search: (before) => ({ ...before, notification: undefined }),
                resetScroll: false,
              })
            }
          />
        )}
      </Suspense>
    </Section>
  );
}
