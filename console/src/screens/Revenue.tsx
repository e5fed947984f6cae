import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import { currenciesOf, revenueQuery, type RevenueInterval } from '../api/reports';
import { intervalName } from '../lib/intervals';
import { count, pluralize } from '../lib/money';
import { words } from '../lib/words';
import { MovementTable } from '../reports/MovementTable';
import { ReportLoading, ReportPage, useReportQuery } from '../reports/ReportPage';
import { ChartPlaceholder, MovementChart, MrrChart } from '../reports/RevenueCharts';
import { Later } from '../ui/Later';
import { Empty, Section, Skeleton } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { Tile, Tiles } from '../ui/Tile';
import { Money } from '../ui/values';

const route = getRouteApi('/revenue');
const STATUSES = new Set(['on_trial', 'paused', 'unpaid', 'pending', 'past_due', 'cancelled']);

type Figures = Schema<'CurrencyRevenue'>;
type PlanRevenue = Schema<'PlanRevenue'>;

export default function Revenue() {
  const search = route.useSearch();
  const query = useReportQuery(search);
  const report = useQuery(revenueQuery(query));
  const currencies = currenciesOf(report.data);
  const currency = search.currency ?? currencies[0];
  const figures = report.data?.currencies.find((entry) => entry.currency === currency);
  const selected = figures?.intervals.find(({ from }) => from === search.at);
  return (
    <ReportPage
      title="Revenue"
      path="/reports/revenue"
      search={search}
      report={report}
      currencies={currencies}
      currency={currency}
    >
      {report.data && !figures ? (
        <div className="card">
          <Empty title="No recurring revenue yet">
            MRR appears with the first active subscription to a plan with a price.
          </Empty>
        </div>
      ) : figures ? (
        <>
          <Levels figures={figures} />
          <Section title="MRR">
            <MrrChart figures={figures} />
          </Section>
          <Section title={`MRR movements in ${figures.currency}`}>
            <Later placeholder={<ChartPlaceholder />}>
              <MovementChart figures={figures} plan={query.plan} />
            </Later>
            <Later>
              <MovementTable
                figures={figures}
                label="MRR movements"
                rows={figures.intervals.toReversed()}
                opensDays={query.interval !== 'day'}
                plan={query.plan}
              />
            </Later>
          </Section>
          {selected && <Days interval={selected} figures={figures} plan={query.plan} />}
          <Later>
            <Section title="Plans">
              <Plans figures={figures} />
            </Section>
            <NotCounted figures={figures} />
          </Later>
        </>
      ) : (
        <ReportLoading />
      )}
    </ReportPage>
  );
}

function Levels({ figures }: { figures: Figures }) {
  const { closing, currency } = figures;
  return (
    <Tiles>
      <Tile
        to="/subscriptions"
        search={{ status: 'active,past_due,cancelled', access: 'true' }}
        label="MRR"
        value={<Money value={closing.mrr} currency={currency} />}
        detail={pluralize(closing.subscriptions, 'subscription')}
      />
      <Tile
        to="/subscriptions"
        search={{ status: 'active,past_due', access: 'true' }}
        label="Committed MRR"
        value={<Money value={closing.committed_mrr} currency={currency} />}
        detail="Without cancelled subscriptions"
      />
      <Tile
        to="/subscriptions"
        search={{ status: 'active,past_due,cancelled', access: 'true' }}
        label="ARR"
        value={<Money value={closing.arr} currency={currency} />}
        detail="Exact, per year"
      />
      <Tile
        to="/payments"
        search={{ currency }}
        label="Paying subscribers"
        value={count(closing.users)}
        detail="Open what was collected"
      />
    </Tiles>
  );
}

type DaysProps = { interval: RevenueInterval; figures: Figures; plan: string | undefined };

/** The days of an interval on which MRR changed. */
function Days({ interval: { from, to }, figures, plan }: DaysProps) {
  const report = useQuery(revenueQuery({ from, to, interval: 'day', plan }));
  const found = report.data?.currencies.find(({ currency }) => currency === figures.currency);
  const days = found?.intervals.filter(({ movements }) =>
    Object.values(movements).some(({ changes }) => changes > 0),
  );
  return (
    <Section title={`${intervalName({ from, to })} by day, in ${figures.currency}`} id="days">
      {days && found ? (
        <MovementTable figures={found} label="Days" rows={days} opensDays={false} plan={plan} />
      ) : (
        <Skeleton height={160} />
      )}
    </Section>
  );
}

function Plans({ figures }: { figures: Figures }) {
  const columns: Column<PlanRevenue>[] = [
    {
      header: 'Plan',
      cell: (plan) => (
        <Link
          to="/subscriptions"
          search={{ plan: plan.subscription_plan_slug, status: 'active,past_due,cancelled' }}
          className="row-link"
          data-row
        >
          {plan.subscription_plan_slug}
        </Link>
      ),
    },
    { header: 'Subscriptions', align: 'end', cell: (plan) => count(plan.subscriptions) },
    { header: 'Subscribers', align: 'end', minor: true, cell: (plan) => count(plan.users) },
    {
      header: 'MRR',
      align: 'end',
      cell: (plan) => <Money value={plan.mrr} currency={figures.currency} />,
    },
  ];
  return (
    <Table
      label="MRR by plan"
      columns={columns}
      rows={figures.plans.toSorted((a, b) => Number(b.mrr) - Number(a.mrr))}
      rowKey={(plan) => plan.subscription_plan_id}
      empty={<Empty title="No plan with MRR" />}
    />
  );
}

/** Parts of MRR to look at, and what is not part of it. */
function NotCounted({ figures }: { figures: Figures }) {
  const parts = [
    ...Object.entries(figures.includes).map(([reason, part]) => ({ reason, part, counted: true })),
    ...Object.entries(figures.not_counted).map(([reason, part]) => ({
      reason,
      part,
      counted: false,
    })),
  ];
  type Part = (typeof parts)[number];
  const columns: Column<Part>[] = [
    {
      header: 'Subscriptions',
      cell: ({ reason }) =>
        STATUSES.has(reason) ? (
          <Link to="/subscriptions" search={{ status: reason }} className="row-link" data-row>
            {words(reason)}
          </Link>
        ) : reason === 'suspended' ? (
          <Link to="/subscriptions" search={{ suspended: 'true' }} className="row-link" data-row>
            Suspended
          </Link>
        ) : (
          words(reason)
        ),
    },
    { header: 'In MRR', cell: ({ counted }) => (counted ? 'yes' : 'no') },
    { header: 'Count', align: 'end', cell: ({ part }) => count(part.subscriptions) },
    {
      header: 'A month',
      align: 'end',
      cell: ({ part }) => <Money value={part.mrr} currency={figures.currency} />,
    },
  ];
  return (
    <Section title="Included and not counted">
      <Table
        label="Included and not counted"
        columns={columns}
        rows={parts}
        rowKey={({ reason, counted }) => `${reason} ${counted}`}
        empty={<Empty title="Every subscription is counted, and none is at risk" />}
      />
    </Section>
  );
}
