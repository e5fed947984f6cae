import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import { readServiceCsv } from '../api/export';
import { countsQuery } from '../api/records';
import { subscriptionFilter, subscriptionListQuery } from '../api/subscriptions';
import { useEmails, useNextSteps } from '../api/users';
import { useNow } from '../lib/clock';
import { count, pluralize } from '../lib/money';
import { day } from '../lib/time';
import { Next } from '../records/next';
import { PlanFilters } from '../records/PlanFilters';
import { ButtonLink } from '../ui/Button';
import { CsvButton } from '../ui/CsvButton';
import { ListTable } from '../ui/ListTable';
import { Empty, Page } from '../ui/Page';
import { Select } from '../ui/Select';
import { Status, SUBSCRIPTION_STATUS, type SubscriptionStatus } from '../ui/Status';
import { Chips, type Column } from '../ui/Table';
import { Money } from '../ui/values';

const route = getRouteApi('/subscriptions');
const STATUSES = Object.keys(SUBSCRIPTION_STATUS) as SubscriptionStatus[];

type Subscription = Schema<'Subscription'>;

const RANGES = [
  { param: 'renews_before', text: 'renews before' },
  { param: 'ends_before', text: 'ends before' },
] as const;

export default function Subscriptions() {
  const search = route.useSearch();
  const now = useNow();
  const list = useQuery(subscriptionListQuery(search));
  const counts = useQuery(countsQuery);
  const rows = list.data?.data;
  const steps = useNextSteps(rows?.map(({ id }) => id) ?? []);
  const emails = useEmails(rows?.map(({ user_id }) => user_id) ?? []);

  const countOf = (status: SubscriptionStatus) => {
    if (!counts.data) return undefined;
    const entry = counts.data.by_status.find((item) => item.status === status);
    return entry ? `${count(entry.count)}${entry.at_least ? '+' : ''}` : '0';
  };
  const total = counts.data?.by_status.reduce((sum, entry) => sum + entry.count, 0);
  const isMore = counts.data?.by_status.some(({ at_least }) => at_least);

  const columns: Column<Subscription>[] = [
    {
      header: 'Subscriber',
      share: 34,
      placeholder: 190,
      cell: (row) => (
        <Link
          to="/subscribers/$id"
          params={{ id: row.user_id }}
          hash={row.id}
          className={`row-link ${emails.has(row.user_id) ? '' : 'row-link-loading'}`}
          data-row
        >
          {emails.get(row.user_id) ?? row.external_user_id ?? row.user_id}
        </Link>
      ),
    },
    {
      header: 'Status',
      share: 15,
      cell: (row) => <Status status={row.status} suspended={row.suspended} />,
    },
    {
      header: 'What next',
      share: 21,
      placeholder: 120,
      cell: (row) => <Next subscription={row} step={steps.get(row.id)} now={now} />,
    },
    {
      header: 'Plan',
      share: 15,
      placeholder: 48,
      cell: (row) => (
        <>
          {row.subscription_plan_slug} <span className="muted">{row.billing_cycle}</span>
        </>
      ),
    },
    {
      header: 'Price',
      share: 15,
      align: 'end',
      placeholder: 80,
      cell: (row) => (
        <span className="nowrap">
          {row.quantity > 1 && <span className="muted">{row.quantity} × </span>}
          <Money value={row.price} currency={row.currency} />
        </span>
      ),
    },
  ];

  const isFiltered = Object.keys(search).some((key) => key !== 'sort');
  return (
    <Page
      title="Subscriptions"
      subtitle={
        total === undefined ? ' ' : `${pluralize(total, 'subscription')}${isMore ? ' or more' : ''}`
      }
      actions={
        <CsvButton
          name="subscriptions.csv"
          read={() => readServiceCsv('/subscriptions', subscriptionFilter(search))}
        />
      }
    >
      <Chips
        label="Status"
        param="status"
        value={search.status}
        options={[
          { value: undefined, label: 'All' },
          ...STATUSES.map((status) => ({
            value: status,
            label: SUBSCRIPTION_STATUS[status].word,
            count: countOf(status) ?? '',
          })),
        ]}
      />
      <div className="filters">
        <PlanFilters plan={search.plan} billingCycle={search.billing_cycle} />
        <Select
          label="Access"
          param="access"
          value={search.access}
          all="with and without"
          options={[
            { value: 'true', label: 'with access' },
            { value: 'false', label: 'without access' },
          ]}
        />
        <Select
          label="Suspended"
          param="suspended"
          value={search.suspended}
          all="yes and no"
          options={[
            { value: 'true', label: 'yes' },
            { value: 'false', label: 'no' },
          ]}
        />
        <Select
          label="Sort by"
          param="sort"
          value={search.sort}
          all="newest"
          options={[
            { value: 'created_at', label: 'oldest' },
            { value: 'renews_at', label: 'next renewal' },
            { value: '-updated_at', label: 'last change' },
          ]}
        />
        {RANGES.map(({ param, text }) => {
          const value = search[param];
          return value ? (
            <span key={param} className="muted">
              {text} {day(value, now)}
            </span>
          ) : null;
        })}
        {isFiltered && (
          <ButtonLink to="/subscriptions" search={{}} look="quiet">
            Clear filters
          </ButtonLink>
        )}
      </div>
      <ListTable
        label="Subscriptions"
        columns={columns}
        list={list}
        expected={12}
        empty={
          isFiltered ? (
            <Empty title="No subscription matches">Remove a filter to see more.</Empty>
          ) : (
            <Empty title="No subscription yet">
              Create one with <code>POST /subscriptions</code>, let a payment provider create it, or
              import existing ones. A sandbox can fill itself with{' '}
              <code>perennial seed --demo</code>.
            </Empty>
          )
        }
      />
    </Page>
  );
}
