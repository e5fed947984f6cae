import type { ReactNode } from 'react';
import { readServiceCsv } from '../api/export';
import { reportParams, type Interval, type ReportSearch } from '../api/reports';
import { useNow } from '../lib/clock';
import { isoDay, monthStart } from '../lib/time';
import { CsvButton } from '../ui/CsvButton';
import { Definitions } from '../ui/Definitions';
import { Failure, Page, Skeleton } from '../ui/Page';
import { Select } from '../ui/Select';
import { Tile, Tiles } from '../ui/Tile';
import { Time } from '../ui/values';
import '../ui/chart.css';
import { CurrencyChoice } from './CurrencyChoice';

const PERIODS = [
  { months: 2, label: '3 months' },
  { months: 5, label: '6 months' },
  { months: 12, label: '13 months' },
  { months: 24, label: '25 months' },
];
const INTERVALS: Interval[] = ['day', 'week', 'month', 'quarter', 'year'];

/** Returns the parameters of a report from those of the URL. */
export function useReportQuery(search: ReportSearch) {
  return reportParams(search, useNow());
}

type Report = {
  as_of: string;
  definitions: Record<string, string>;
};

type Props = {
  title: string;
  path: string;
  search: ReportSearch;
  report: { data?: Report; error: unknown; refetch: () => unknown };
  currencies: string[];
  currency?: string;
  /** Whether intervals other than months make sense. */
  hasIntervals?: boolean;
  children: ReactNode;
};

/** A report: its period, what it covers, its definitions and its CSV. */
export function ReportPage(props: Props) {
  const { title, path, search, report, currencies, currency, hasIntervals = true } = props;
  const now = useNow();
  const query = useReportQuery(search);
  const { data } = report;
  return (
    <Page
      title={title}
      subtitle={
        data ? (
          <>
            <span>
              As of <Time at={data.as_of} format="clock" />
            </span>
            <Definitions definitions={data.definitions} />
          </>
        ) : (
          <Skeleton height={16} width={180} />
        )
      }
      actions={
        <CsvButton
          name={`${title.toLowerCase()}.csv`}
          read={() => readServiceCsv(path, { ...query, currency: search.currency })}
        />
      }
    >
      <div className="filters">
        <Select
          label="Period"
          param="from"
          value={query.from}
          options={PERIODS.map(({ months, label }) => ({
            value: isoDay(monthStart(now, months)),
            label,
          }))}
        />
        {hasIntervals && (
          <Select
            label="By"
            param="interval"
            value={query.interval}
            options={INTERVALS.map((value) => ({ value, label: value }))}
          />
        )}
        <CurrencyChoice currencies={currencies} value={currency} />
      </div>
      {report.error ? (
        <Failure error={report.error} retry={() => void report.refetch()} />
      ) : (
        props.children
      )}
    </Page>
  );
}

/** The shape of a report while it loads. */
export function ReportLoading() {
  return (
    <>
      <Tiles>
        <Tile to="." label=" " value={undefined} />
        <Tile to="." label=" " value={undefined} />
        <Tile to="." label=" " value={undefined} />
      </Tiles>
      <div className="card chart chart-empty" aria-busy="true" />
    </>
  );
}
