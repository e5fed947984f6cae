import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { api, body, type Schema } from '../api/client';
import { readServiceCsv } from '../api/export';
import { paymentsReportQuery } from '../api/reports';
import { useCan } from '../api/session';
import { useEmails, useSubscriptions } from '../api/users';
import { useNow } from '../lib/clock';
import { intervalName } from '../lib/intervals';
import { pluralize } from '../lib/money';
import { endOf, isoDay, monthStart, startOf } from '../lib/time';
import { PaymentTable } from '../records/PaymentTable';
import { changesOf } from '../reports/changes';
import { CurrencyChoice } from '../reports/CurrencyChoice';
import { PaymentsChart } from '../reports/PaymentsChart';
import { ButtonLink } from '../ui/Button';
import { CsvButton } from '../ui/CsvButton';
import { Definitions } from '../ui/Definitions';
import { Empty, Failure, Page, Section } from '../ui/Page';
import { PAYMENT_STATUS, type PaymentStatus } from '../ui/Status';
import { Chips, Pager } from '../ui/Table';
import { Tile, Tiles } from '../ui/Tile';
import { Money } from '../ui/values';

const route = getRouteApi('/payments');
const STATUSES = Object.keys(PAYMENT_STATUS) as PaymentStatus[];

type Search = ReturnType<typeof route.useSearch>;

/** Payments that are not settled have no `paid_at`, so that they are filtered by their creation. */
function filterOf({ status, currency, from, to }: Search) {
  const isSettled = !!from && !!status && !/failed|pending|void/.test(status);
  const range = isSettled
    ? { 'paid_at[gte]': startOf(from), 'paid_at[lt]': endOf(to), sort: '-paid_at' as const }
    : {
        'created_at[gte]': startOf(from),
        'created_at[lt]': endOf(to),
        sort: '-created_at' as const,
      };
  return { status, currency, ...range };
}

const listQuery = (search: Search) => {
  const query = { ...filterOf(search), limit: 50, cursor: search.cursor };
  return queryOptions({
    queryKey: ['payments', 'list', query],
    queryFn: () => body(api.GET('/payments', { params: { query } })),
    placeholderData: keepPreviousData,
  });
};

export default function Payments() {
  const search = route.useSearch();
  const list = useQuery(listQuery(search));
  const rows = list.data?.data;
  const seesSums = useCan('reports:read');
  const isFiltered = Object.keys(search).length > 0;
  const subscriptions = useSubscriptions(rows?.map((row) => row.subscription_id) ?? []);
  const emails = useEmails([...subscriptions.values()].map(({ user_id }) => user_id));

  const subscriber = (payment: Schema<'Payment'>) => {
    const subscription = subscriptions.get(payment.subscription_id);
    if (!subscription) return <span className="muted">…</span>;
    const { user_id, external_user_id } = subscription;
    return (
      <Link
        to="/subscribers/$id"
        params={{ id: user_id }}
        hash="payments"
        className="row-link"
        data-row
      >
        {emails.get(user_id) ?? external_user_id ?? user_id}
      </Link>
    );
  };

  return (
    <Page
      title="Payments"
      actions={
        <CsvButton name="payments.csv" read={() => readServiceCsv('/payments', filterOf(search))} />
      }
    >
      {seesSums && !search.cursor && <Sums currency={search.currency} />}
      <Section
        title={
          search.from && search.to
            ? `Payments of ${intervalName({ from: search.from, to: search.to })}`
            : 'All payments'
        }
        aside={
          isFiltered && (
            <ButtonLink to="/payments" search={{}} look="quiet">
              Clear filters
            </ButtonLink>
          )
        }
      >
        <Chips
          label="Status"
          param="status"
          value={search.status}
          options={[
            { value: undefined, label: 'All' },
            ...STATUSES.map((status) => ({ value: status, label: PAYMENT_STATUS[status].word })),
          ]}
        />
        <PaymentTable
          first={{ header: 'Subscriber', placeholder: 180, cell: subscriber }}
          rows={rows}
          error={list.error}
          retry={() => void list.refetch()}
          stale={list.isPlaceholderData}
          expected={12}
          empty={
            isFiltered ? (
              <Empty title="No payment matches">Remove a filter to see more.</Empty>
            ) : (
              <Empty title="No payment yet">
                Payments arrive from a payment provider, or are recorded with{' '}
                <code>POST /subscription-payments</code>.
              </Empty>
            )
          }
        />
        <Pager next={list.data?.next_cursor} shown={rows?.length} />
      </Section>
    </Page>
  );
}

/** What was collected this month, beside what was lost on the way, and the months before. */
function Sums({ currency: chosen }: { currency: string | undefined }) {
  const now = useNow();
  const from = isoDay(monthStart(now, 12));
  const report = useQuery(paymentsReportQuery({ from, interval: 'month' }));
  const currencies = report.data?.currencies.map(({ currency }) => currency) ?? [];
  const currency = chosen ?? currencies[0];
  const figures = report.data?.currencies.find((entry) => entry.currency === currency);
  const current = figures?.intervals.at(-1);
  if (report.error) return <Failure error={report.error} retry={() => void report.refetch()} />;
  if (report.data && !figures) return null;
  const range = { from: current?.from, to: current?.to, currency };
  const late = current?.late;
  return (
    <>
      <Section
        title="This month"
        aside={
          <span className="filters">
            <CurrencyChoice currencies={currencies} value={currency} />
            <Definitions definitions={report.data?.definitions} />
          </span>
        }
      >
        <Tiles>
          <Tile
            to="/payments"
            search={{ ...range, status: 'completed,partially_refunded,refunded,disputed' }}
            label="Collected"
            value={current && <Money value={current.collected.amount} currency={currency} />}
            detail={current && pluralize(current.collected.payments, 'payment')}
          />
          <Tile
            to="/payments"
            search={{ ...range, status: 'partially_refunded,refunded,disputed' }}
            label="Refunded and disputed"
            value={
              current && (
                <Money
                  value={(
                    Number(current.refunded.amount) + Number(current.disputed.amount)
                  ).toFixed(2)}
                  currency={currency}
                />
              )
            }
            detail={
              current && (
                <>
                  Net <Money value={current.net} currency={currency} />
                </>
              )
            }
          />
          <Tile
            to="/payments"
            search={{ ...range, status: 'failed' }}
            label="Failed"
            value={current && <Money value={current.failed.amount} currency={currency} />}
            detail={current && pluralize(current.failed.payments, 'payment')}
          />
          <Tile
            {...(current ? changesOf('late_started', current, { currency }) : { to: '.' })}
            label="Became late"
            value={late && pluralize(late.started.subscriptions, 'subscription')}
            detail={
              late && `${late.recovered.subscriptions} recovered · ${late.lost.subscriptions} ended`
            }
          />
        </Tiles>
      </Section>
      <Section title="Collected by month">
        {figures ? <PaymentsChart figures={figures} /> : <div className="card chart chart-empty" />}
      </Section>
    </>
  );
}
