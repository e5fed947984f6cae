import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { isoDay, monthStart } from '../lib/time';
import { api, body, type Schema } from './client';

type Period = { from?: string; to?: string; interval?: Interval; currency?: string };
type Filter = Period & { plan?: string };
export type Interval = 'day' | 'week' | 'month' | 'quarter' | 'year';

export type RevenueReport = Schema<'RevenueReport'>;
export type RevenueInterval = Schema<'RevenueInterval'>;

export const revenueQuery = (query: Filter) =>
  queryOptions({
    queryKey: ['reports', 'revenue', query],
    queryFn: () => body(api.GET('/reports/revenue', { params: { query } })),
    placeholderData: keepPreviousData,
  });

export type ReportSearch = {
  currency?: string;
  from?: string;
  interval?: string;
  plan?: string;
};

const DEFAULT_MONTHS = 12;

/** Returns the parameters of a report from those of the URL. */
export const reportParams = (search: ReportSearch, now: number) => ({
  from: search.from ?? isoDay(monthStart(now, DEFAULT_MONTHS)),
  interval: (search.interval ?? 'month') as Interval,
  plan: search.plan,
});

export const churnQuery = (query: Filter) =>
  queryOptions({
    queryKey: ['reports', 'churn', query],
    queryFn: () => body(api.GET('/reports/churn', { params: { query } })),
    placeholderData: keepPreviousData,
  });

/** The revenue of the last 13 months. */
export const overviewRevenueQuery = (now: number) => revenueQuery(reportParams({}, now));

/** The churn of this month and the one before. */
export const overviewChurnQuery = (now: number) =>
  churnQuery({ from: isoDay(monthStart(now, 1)), interval: 'month' });

export const trialsQuery = (query: Filter) =>
  queryOptions({
    queryKey: ['reports', 'trials', query],
    queryFn: () => body(api.GET('/reports/trials', { params: { query } })),
    placeholderData: keepPreviousData,
  });

export const cohortsQuery = (query: Period) =>
  queryOptions({
    queryKey: ['reports', 'cohorts', query],
    queryFn: () => body(api.GET('/reports/cohorts', { params: { query } })),
    placeholderData: keepPreviousData,
  });

export const paymentsReportQuery = (query: Period) =>
  queryOptions({
    queryKey: ['reports', 'payments', query],
    queryFn: () => body(api.GET('/reports/payments', { params: { query } })),
    placeholderData: keepPreviousData,
  });

type ChangeFilter = Period & {
  kind?: string;
  started_month?: string;
  plan?: string;
  billing_cycle?: string;
};

/** Reads a page of changes. `kind` has one or several kinds, separated by commas. */
export const readChanges = (filter: ChangeFilter, limit: number, cursor?: string) =>
  body(api.GET('/reports/changes', { params: { query: { ...filter, limit, cursor } as never } }));

const closingMrr = ({ closing }: Schema<'CurrencyRevenue'>) => Number(closing.mrr);

/** Returns the names of a report's currencies, the one with the most money first. */
export function currenciesOf(report: RevenueReport | undefined): string[] {
  const currencies = report?.currencies ?? [];
  return currencies
    .toSorted((a, b) => closingMrr(b) - closingMrr(a))
    .map(({ currency }) => currency);
}
