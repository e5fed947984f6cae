import { queryOptions } from '@tanstack/react-query';
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

/** The trials that end before a time, at most 100. */
export const trialsEndingQuery = (before: string) =>
  queryOptions({
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

export const plansQuery = queryOptions({
  queryKey: ['plans'],
  queryFn: () => body(api.GET('/subscription-plans', { params: { query: { limit: 200 } } })),
  staleTime: 60_000,
});
