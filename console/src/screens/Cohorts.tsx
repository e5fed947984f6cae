import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schema } from '../api/client';
import { cohortsQuery } from '../api/reports';
import { count, money } from '../lib/money';
import { month, shortMonth } from '../lib/time';
import { ReportPage, useReportQuery } from '../reports/ReportPage';
import { Empty, Section, Skeleton } from '../ui/Page';
import { Chips } from '../ui/Table';
import '../reports/cohorts.css';

const route = getRouteApi('/cohorts');

type Cohort = Schema<'Cohort'>;

export default function Cohorts() {
  const search = route.useSearch();
  const { from } = useReportQuery(search);
  const report = useQuery(cohortsQuery({ from }));
  const currencies = [...new Set(report.data?.cohorts.map(({ currency }) => currency))];
  const currency = search.currency ?? currencies[0];
  const cohorts = report.data?.cohorts.filter((cohort) => cohort.currency === currency);
  const byRevenue = search.by === 'revenue';
  return (
    <ReportPage
      title="Cohorts"
      path="/reports/cohorts"
      search={search}
      report={report}
      currencies={currencies}
      currency={currency}
      hasIntervals={false}
    >
      <Chips
        label="Retention of"
        param="by"
        value={search.by}
        options={[
          { value: undefined, label: 'Subscribers' },
          { value: 'revenue', label: 'Revenue' },
        ]}
      />
      <Section
        title={`${byRevenue ? 'Revenue' : 'Subscribers'} retained, by month since the first payment`}
      >
        {!cohorts ? (
          <Skeleton height={420} />
        ) : cohorts.length === 0 ? (
          <div className="card">
            <Empty title="No cohort in this period">
              A cohort is the users who first paid in a month.
            </Empty>
          </div>
        ) : (
          <Retention cohorts={cohorts} byRevenue={byRevenue} />
        )}
      </Section>
    </ReportPage>
  );
}

function Retention({ cohorts, byRevenue }: { cohorts: Cohort[]; byRevenue: boolean }) {
  const longest = Math.max(...cohorts.map(({ months }) => months.length));
  const columns = Array.from({ length: longest }, (_, index) => index);
  return (
    // The box scrolls, so that the keyboard must reach it.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="card scroll-box" role="region" aria-label="Retention" tabIndex={0}>
      <table className="cohorts">
        <thead>
          <tr>
            <th scope="col">First paid</th>
            <th scope="col" className="cell-end">
              Users
            </th>
            {columns.map((index) => (
              <th key={index} scope="col" className="cell-end cohort-month">
                {index}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {cohorts.map((cohort) => (
            <tr key={cohort.month}>
              <th scope="row">{shortMonth(cohort.month)}</th>
              <td className="cell-end">{count(cohort.joined)}</td>
              {cohort.months.map((entry) => {
                const share = byRevenue ? entry.revenue_retention : entry.user_retention;
                const level = Math.min(10, Math.max(0, Math.round(Number(share ?? 0) * 10)));
                return (
                  <td
                    key={entry.month}
                    className={`cell-end retention-${level}`}
                    data-tip={`${month(entry.month)}: ${count(entry.users)} of ${count(cohort.joined)} users, ${money(entry.mrr, cohort.currency)} MRR`}
                  >
                    {share === null ? '–' : `${Math.round(Number(share) * 100)}%`}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
