import { keepPreviousData, queryOptions } from '@tanstack/react-query';
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

export const churnQuery = (query: Filter) =>
  queryOptions({
    queryKey: ['reports', 'churn', query],
    queryFn: () => body(api.GET('/reports/churn', { params: { query } })),
    placeholderData: keepPreviousData,
  });

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

const closingMrr = ({ closing }: Schema<'CurrencyRevenue'>) => Number(closing.mrr);

/** Returns the names of a report's currencies, the one with the most money first. */
export function currenciesOf(report: RevenueReport | undefined): string[] {
  const currencies = report?.currencies ?? [];
  return currencies
    .toSorted((a, b) => closingMrr(b) - closingMrr(a))
    .map(({ currency }) => currency);
}
