import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import { readCsv } from '../api/export';
import { currenciesOf, readChanges, revenueQuery } from '../api/reports';
import { useEmails } from '../api/users';
import { useNow } from '../lib/clock';
import { money, pluralize } from '../lib/money';
import { isoDay, month, monthStart } from '../lib/time';
import { PlanFilters } from '../records/PlanFilters';
import { CHANGE_KINDS, kindLabel } from '../reports/changes';
import { ButtonLink } from '../ui/Button';
import { CsvButton } from '../ui/CsvButton';
import { DateField } from '../ui/DateField';
import { ListTable } from '../ui/ListTable';
import { Empty, Page } from '../ui/Page';
import { Select } from '../ui/Select';
import type { Column } from '../ui/Table';
import { Money, Time } from '../ui/values';

const route = getRouteApi('/revenue/changes');
const DEFAULT_MONTHS = 12;

type Change = Schema<'ReportChange'>;

const signed = new Intl.NumberFormat('en', { signDisplay: 'exceptZero' });

/** Returns what a list that fits on one page adds up to, for each currency. */
function sumsOf(rows: Change[]): string {
  const sums = new Map<string, number>();
  for (const { currency, mrr } of rows) {
    sums.set(currency, (sums.get(currency) ?? 0) + Number(mrr));
  }
  return [...sums]
    .map(([currency, sum]) => money(sum.toFixed(4).replace(/00$/, ''), currency, true))
    .join(', ');
}

/** The changes of users that a figure of a report counts. */
export default function Changes() {
  const { cursor, ...search } = route.useSearch();
  const now = useNow();
  const today = isoDay(now);
  const filter = { ...search, from: search.from ?? isoDay(monthStart(now, DEFAULT_MONTHS)) };
  const list = useQuery(
    queryOptions({
      queryKey: ['reports', 'changes', filter, cursor],
      queryFn: () => readChanges(filter, 50, cursor),
      placeholderData: keepPreviousData,
    }),
  );
  const revenue = useQuery(revenueQuery({ from: isoDay(monthStart(now)), interval: 'month' }));
  const rows = list.data?.data;
  const next = list.data?.next_cursor;
  const emails = useEmails(rows?.map(({ user_id }) => user_id) ?? []);
  const currencies = new Set([
    ...currenciesOf(revenue.data),
    ...(search.currency ?? '').split(','),
  ]);

  const columns: Column<Change>[] = [
    {
      header: 'Subscriber',
      placeholder: 190,
      cell: ({ user_id }) => (
        <Link to="/subscribers/$id" params={{ id: user_id }} className="row-link" data-row>
          {emails.get(user_id) ?? user_id}
        </Link>
      ),
    },
    { header: 'Day', cell: (change) => <Time at={change.day} format="day" /> },
    { header: 'Change', cell: ({ kind }) => kindLabel(kind) },
    {
      header: 'Subscriptions',
      align: 'end',
      cell: ({ subscriptions }) => signed.format(subscriptions).replace('-', '−'),
    },
    {
      header: 'MRR',
      align: 'end',
      cell: ({ mrr, currency }) => <Money value={mrr} currency={currency} sign />,
    },
  ];

  const total =
    rows && !cursor && !next && rows.length > 0
      ? `${pluralize(rows.length, 'change')}, ${sumsOf(rows)} MRR`
      : 'What each subscriber’s subscriptions added to a figure, for each day and currency.';
  return (
    <Page
      title="Changes"
      heading={search.kind ? `Changes: ${kindLabel(search.kind).toLowerCase()}` : 'Changes of MRR'}
      subtitle={
        <>
          <Link to="/revenue" search={{ currency: search.currency }}>
            Revenue
          </Link>
          <span>{total}</span>
        </>
      }
      actions={
        <CsvButton
          name="changes.csv"
          read={() => readCsv((page) => readChanges(filter, 200, page))}
        />
      }
    >
      <div className="filters">
        <Select
          label="Change"
          param="kind"
          value={search.kind}
          all="all of MRR"
          options={CHANGE_KINDS.map(({ key, label }) => ({ value: key, label }))}
        />
        <DateField label="From" param="from" value={filter.from} max={search.to ?? today} />
        <DateField label="To" param="to" value={search.to ?? today} min={filter.from} max={today} />
        <Select
          label="Currency"
          param="currency"
          value={search.currency}
          all="all"
          options={[...currencies].filter(Boolean).map((value) => ({ value, label: value }))}
        />
        {search.started_month && (
          <span className="badge">Began in {month(search.started_month)}</span>
        )}
        <PlanFilters plan={search.plan} billingCycle={search.billing_cycle} />
        {Object.keys(search).length > 0 && (
          <ButtonLink to="/revenue/changes" search={{}} look="quiet">
            Clear filters
          </ButtonLink>
        )}
      </div>
      <ListTable
        label="Changes"
        columns={columns}
        list={list}
        rowKey={({ day, user_id, currency, kind }) => `${day} ${user_id} ${currency} ${kind}`}
        expected={12}
        empty={
          next ? (
            <Empty title="No change on this page">Open the next page: earlier days follow.</Empty>
          ) : (
            <Empty title="No change matches">Choose a longer period, or remove a filter.</Empty>
          )
        }
      />
    </Page>
  );
}
