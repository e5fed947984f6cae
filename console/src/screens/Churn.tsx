import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import { churnQuery } from '../api/reports';
import { intervalName, intervalTick } from '../lib/intervals';
import { count, percent } from '../lib/money';
import { changesOf, GROSS_CHURN, NET_CHURN } from '../reports/changes';
import { ReportLoading, ReportPage, useReportQuery } from '../reports/ReportPage';
import { AreaChart } from '../ui/Chart';
import { Empty, Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { Tile, Tiles } from '../ui/Tile';
import { Money } from '../ui/values';

const route = getRouteApi('/churn');

type ChurnInterval = Schema<'ChurnInterval'>;

export default function Churn() {
  const search = route.useSearch();
  const query = useReportQuery(search);
  const report = useQuery(churnQuery(query));
  const currencies = report.data?.currencies.map(({ currency }) => currency) ?? [];
  const currency = search.currency ?? currencies[0];
  const figures = report.data?.currencies.find((entry) => entry.currency === currency);
  return (
    <ReportPage
      title="Churn"
      path="/reports/churn"
      search={search}
      report={report}
      currencies={currencies}
      currency={currency}
    >
      {report.data && !figures ? (
        <div className="card">
          <Empty title="No churn yet">
            Churn appears once a subscriber has paid and then stops paying.
          </Empty>
        </div>
      ) : figures ? (
        <Figures intervals={figures.intervals} currency={figures.currency} plan={query.plan} />
      ) : (
        <ReportLoading />
      )}
    </ReportPage>
  );
}

type FiguresProps = { intervals: ChurnInterval[]; currency: string; plan: string | undefined };

function Figures({ intervals, currency, plan }: FiguresProps) {
  const changes = (kind: string, interval: ChurnInterval) =>
    changesOf(kind, interval, { currency, plan });
  const last = intervals.at(-1);
  const points = intervals.map((interval) => ({
    from: interval.from,
    tick: intervalTick(interval),
    name: intervalName(interval),
    interval,
  }));
  const text = ({ interval }: (typeof points)[number]) =>
    `${percent(interval.user_churn_rate)}, ${count(interval.churned_users)} of ${count(interval.opening_users)} subscribers`;
  const columns: Column<ChurnInterval>[] = [
    {
      header: 'Interval',
      cell: (interval) => (
        <Link {...changes('churned', interval)} className="row-link nowrap" data-row>
          {intervalName(interval)}
        </Link>
      ),
    },
    {
      header: 'Subscribers lost',
      align: 'end',
      cell: (interval) => (
        <Link {...changes('churned', interval)} className="number-link nowrap">
          {count(interval.churned_users)} of {count(interval.opening_users)}
        </Link>
      ),
    },
    { header: 'Share', align: 'end', cell: (interval) => percent(interval.user_churn_rate) },
    {
      header: 'MRR churned',
      align: 'end',
      cell: (interval) => (
        <Link {...changes('churned', interval)} className="number-link">
          <Money value={interval.churned.mrr} currency={currency} />
        </Link>
      ),
    },
    {
      header: 'Contraction',
      align: 'end',
      minor: true,
      cell: (interval) => (
        <Link {...changes('contraction', interval)} className="number-link">
          <Money value={interval.contraction.mrr} currency={currency} />
        </Link>
      ),
    },
    {
      header: 'Gross revenue',
      align: 'end',
      cell: (interval) => (
        <Link {...changes(GROSS_CHURN, interval)} className="number-link">
          {percent(interval.gross_revenue_churn_rate)}
        </Link>
      ),
    },
    {
      header: 'Net revenue',
      align: 'end',
      cell: (interval) => (
        <Link {...changes(NET_CHURN, interval)} className="number-link">
          {percent(interval.net_revenue_churn_rate)}
        </Link>
      ),
    },
  ];
  return (
    <>
      {last && (
        <Tiles>
          <Tile
            {...changes('churned', last)}
            label="Subscriber churn"
            value={percent(last.user_churn_rate)}
            detail={`${count(last.churned_users)} of ${count(last.opening_users)} in ${intervalName(last)}`}
          />
          <Tile
            {...changes(GROSS_CHURN, last)}
            label="Gross revenue churn"
            value={percent(last.gross_revenue_churn_rate)}
            detail={
              <>
                of <Money value={last.opening.mrr} currency={currency} />
              </>
            }
          />
          <Tile
            {...changes(NET_CHURN, last)}
            label="Net revenue churn"
            value={percent(last.net_revenue_churn_rate)}
            detail="After expansion and reactivation"
          />
        </Tiles>
      )}
      <Section title="Subscriber churn in percent">
        <AreaChart
          label="Subscriber churn in percent"
          tone="red"
          points={points}
          value={({ interval }) => Number(interval.user_churn_rate ?? 0) * 100}
          readout={text}
          describe={text}
          link={({ interval }) => changes('churned', interval)}
        />
      </Section>
      <Section title="By interval">
        <Table
          label="Churn by interval"
          columns={columns}
          rows={intervals.toReversed()}
          rowKey={({ from }) => from}
          empty={<Empty title="No interval" />}
        />
      </Section>
    </>
  );
}
