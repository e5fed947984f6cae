import { queryOptions } from '@tanstack/react-query';
import { accessLoss } from '../lib/access';
import { DAY, isoDay } from '../lib/time';
import { api, body } from './client';

export const countsQuery = queryOptions({
  queryKey: ['subscriptions', 'counts'],
  queryFn: () => body(api.GET('/subscriptions/counts')),
});

export const webhookEndpointsQuery = queryOptions({
  queryKey: ['webhook-endpoints'],
  queryFn: () => body(api.GET('/webhook-endpoints', { params: { query: { limit: 200 } } })),
});

const ENDING_LIMIT = 100;

/** The number of days in which a subscription needs attention. */
export const SOON = 3;

/** Returns the end of those days. */
export const endOfSoon = (now: number) => `${isoDay(now + SOON * DAY)}T00:00:00Z`;

/** The trials that end soon, at most 100. */
export const trialsEndingQuery = (now: number) => {
  const before = endOfSoon(now);
  return queryOptions({
    queryKey: ['subscriptions', 'trials-ending', before],
    queryFn: () =>
      body(
        api.GET('/subscriptions', {
          params: {
            query: { status: 'on_trial', 'renews_at[lt]': before, limit: ENDING_LIMIT },
          },
        }),
      ),
  });
};

export const plansQuery = queryOptions({
  queryKey: ['plans'],
  queryFn: () => body(api.GET('/subscription-plans', { params: { query: { limit: 200 } } })),
  staleTime: 60_000,
});

/**
 * When past due subscriptions lose their access, unless they are paid. The 100 that have been late for the longest are
 * read.
 */
export const accessLossQuery = queryOptions({
  queryKey: ['subscriptions', 'access-loss'],
  queryFn: async () => {
    const late = await body(
      api.GET('/subscriptions', {
        params: {
          query: { status: 'past_due', is_active: 'true', sort: 'renews_at', limit: ENDING_LIMIT },
        },
      }),
    );
    if (late.data.length === 0) return { times: [], hasMore: false };
    const subscription_id = late.data.map(({ id }) => id).join(',');
    const steps = await body(
      api.GET('/subscriptions/next-steps', { params: { query: { subscription_id } } }),
    );
    return {
      times: steps.data.flatMap(({ next }) => accessLoss(next) ?? []),
      hasMore: late.has_more,
    };
  },
});
