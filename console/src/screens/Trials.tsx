import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import { trialsQuery } from '../api/reports';
import { intervalName, intervalTick } from '../lib/intervals';
import { count, percent } from '../lib/money';
import { month, monthSpan } from '../lib/time';
import { changesOf, TRIALS } from '../reports/changes';
import { ReportLoading, ReportPage, useReportQuery } from '../reports/ReportPage';
import { StackedBars, type Series } from '../ui/Chart';
import { Empty, Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { Tile, Tiles } from '../ui/Tile';

const route = getRouteApi('/trials');
const SERIES: Series[] = [
  { key: 'converted', label: 'Converted', tone: 'green' },
  { key: 'lost', label: 'Lost', tone: 'red' },
];

type TrialInterval = Schema<'TrialInterval'>;
type TrialCohort = Schema<'TrialCohort'>;

export default function Trials() {
  const search = route.useSearch();
  const query = useReportQuery(search);
  const report = useQuery(trialsQuery(query));
  return (
    <ReportPage
      title="Trials"
      path="/reports/trials"
      search={search}
      report={report}
      currencies={[]}
    >
      {report.data ? (
        <Figures
          intervals={report.data.intervals}
          cohorts={report.data.cohorts}
          plan={query.plan}
        />
      ) : (
        <ReportLoading />
      )}
    </ReportPage>
  );
}

type FiguresProps = {
  intervals: TrialInterval[];
  cohorts: TrialCohort[];
  plan: string | undefined;
};

function Figures({ intervals, cohorts, plan }: FiguresProps) {
  const changes = (outcome: string, span: { from: string; to: string }) =>
    changesOf(`trial_${outcome}`, span, { plan });
  const whole = { from: intervals[0]?.from ?? '', to: intervals.at(-1)?.to ?? '' };
  const sum = (key: 'started' | 'converted' | 'lost') =>
    intervals.reduce((total, interval) => total + interval[key], 0);
  const ended = sum('converted') + sum('lost');
  if (sum('started') + ended === 0) {
    return (
      <div className="card">
        <Empty title="No trial in this period">
          A plan with <code>trial_days</code> gives each new subscriber a trial.
        </Empty>
      </div>
    );
  }
  const points = intervals.map((interval) => ({
    from: interval.from,
    tick: intervalTick(interval),
    name: intervalName(interval),
    interval,
  }));
  const text = ({ interval }: (typeof points)[number]) =>
    `${count(interval.started)} started, ${count(interval.converted)} converted, ${count(interval.lost)} lost`;
  const number = (outcome: 'started' | 'converted' | 'lost') => (interval: TrialInterval) => (
    <Link {...changes(outcome, interval)} className="number-link">
      {count(interval[outcome])}
    </Link>
  );
  const columns: Column<TrialInterval>[] = [
    {
      header: 'Interval',
      cell: (interval) => (
        <Link {...changes('started', interval)} className="row-link nowrap" data-row>
          {intervalName(interval)}
        </Link>
      ),
    },
    { header: 'Started', align: 'end', cell: number('started') },
    { header: 'Converted', align: 'end', cell: number('converted') },
    { header: 'Lost', align: 'end', cell: number('lost') },
    {
      header: 'Conversion',
      align: 'end',
      cell: ({ conversion_rate }) => percent(conversion_rate),
    },
  ];
  const ofCohort =
    (kind: string, figure: 'converted' | 'lost' | 'undecided') => (cohort: TrialCohort) => (
      <Link
        {...changesOf(kind, whole, { plan, started_month: cohort.month })}
        className="number-link"
      >
        {count(cohort[figure])}
      </Link>
    );
  const cohortColumns: Column<TrialCohort>[] = [
    {
      header: 'Started in',
      cell: (cohort) => (
        <Link {...changes('started', monthSpan(cohort.month))} className="row-link nowrap" data-row>
          {month(cohort.month)}
        </Link>
      ),
    },
    {
      header: 'Trials',
      align: 'end',
      cell: (cohort) => (
        <Link {...changes('started', monthSpan(cohort.month))} className="number-link">
          {count(cohort.started)}
        </Link>
      ),
    },
    { header: 'Converted', align: 'end', cell: ofCohort('trial_converted', 'converted') },
    { header: 'Lost', align: 'end', cell: ofCohort('trial_lost', 'lost') },
    { header: 'Undecided', align: 'end', cell: ofCohort(TRIALS, 'undecided') },
    {
      header: 'Conversion',
      align: 'end',
      cell: ({ conversion_rate }) => percent(conversion_rate),
    },
  ];
  return (
    <>
      <Tiles>
        <Tile
          {...changes('started', whole)}
          label="Trials started"
          value={count(sum('started'))}
          detail={intervals.length > 0 && `since ${month(whole.from)}`}
        />
        <Tile
          {...changes('converted', whole)}
          label="Converted"
          value={count(sum('converted'))}
          detail={`of ${count(ended)} that ended`}
        />
        <Tile
          {...changes('lost', whole)}
          label="Conversion"
          value={percent(ended ? String(sum('converted') / ended) : null)}
          detail={`${count(sum('lost'))} lost`}
        />
      </Tiles>
      <Section title="Trials that ended">
        <StackedBars
          label="Trials that ended"
          points={points}
          series={SERIES}
          value={({ interval }, key) => (key === 'converted' ? interval.converted : -interval.lost)}
          readout={text}
          describe={text}
          link={({ interval }) => changes('converted', interval)}
        />
      </Section>
      <Section title="By interval in which they ended">
        <Table
          label="Trials by interval"
          columns={columns}
          rows={intervals.toReversed()}
          rowKey={({ from }) => from}
          empty={<Empty title="No interval" />}
        />
      </Section>
      <Section title="By month in which they started">
        <Table
          label="Trials by month of their start"
          columns={cohortColumns}
          rows={cohorts.toReversed()}
          rowKey={(cohort) => cohort.month}
          empty={<Empty title="No trial started in this period" />}
        />
      </Section>
    </>
  );
}
