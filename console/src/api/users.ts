import { queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import { api, body, type Schema } from './client';

export const userQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', id],
    queryFn: () => body(api.GET('/users/{id}', { params: { path: { id } } })),
  });

export const timelineQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', id, 'timeline'],
    queryFn: () => body(api.GET('/users/{id}/timeline', { params: { path: { id } } })),
  });

export const entitlementsQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', id, 'entitlements'],
    queryFn: () => body(api.GET('/entitlements/{user_id}', { params: { path: { user_id: id } } })),
  });

export const userSubscriptionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', id, 'subscriptions'],
    queryFn: () =>
      body(
        api.GET('/subscriptions', {
          params: { query: { user_id: id, sort: '-created_at', limit: 100 } },
        }),
      ),
  });

export const sessionsQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', id, 'sessions'],
    queryFn: () => body(api.GET('/users/{id}/sessions', { params: { path: { id } } })),
  });

export const identitiesQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', id, 'identities'],
    queryFn: () => body(api.GET('/users/{id}/identities', { params: { path: { id } } })),
  });

export const userPaymentsQuery = (id: string) =>
  queryOptions({
    queryKey: ['users', id, 'payments'],
    queryFn: () =>
      body(
        api.GET('/payments', {
          params: { query: { user_id: id, sort: '-created_at', limit: 50 } },
        }),
      ),
  });

/** Returns the email addresses of users by their id, as far as they are loaded. */
export function useEmails(ids: string[]): Map<string, string | null> {
  return useQueries({
    queries: [...new Set(ids)].map(userQuery),
    combine: (results) =>
      new Map(results.flatMap(({ data }) => (data ? [[data.id, data.email] as const] : []))),
  });
}

const subscriptionQuery = (id: string) =>
  queryOptions({
    queryKey: ['subscriptions', id],
    queryFn: () => body(api.GET('/subscriptions/{id}', { params: { path: { id } } })),
  });

/** Returns subscriptions by their id, as far as they are loaded. */
export function useSubscriptions(ids: string[]): Map<string, Schema<'Subscription'>> {
  return useQueries({
    queries: [...new Set(ids)].map(subscriptionQuery),
    combine: (results) =>
      new Map(results.flatMap(({ data }) => (data ? [[data.id, data] as const] : []))),
  });
}

/** Returns the next step of subscriptions by their id, as far as they are loaded. */
export function useNextSteps(ids: string[]): Map<string, Schema<'TimelineStep'>> {
  const query = { subscription_id: ids.join(',') };
  const { data } = useQuery({
    queryKey: ['subscriptions', 'next-steps', query],
    queryFn: () => body(api.GET('/subscriptions/next-steps', { params: { query } })),
    enabled: ids.length > 0,
  });
  const first = data?.data.flatMap(({ subscription_id, next }) =>
    next[0] ? [[subscription_id, next[0]] as const] : [],
  );
  return new Map(first);
}
