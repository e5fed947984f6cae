import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
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

/** How many records are read at the same time. Browsers have no more connections to a server. */
const MAX_REQUESTS = 6;

/** Reads records by their id. Those that cannot be read are missing. */
async function readEach<Data>(ids: string[], read: (id: string) => Promise<Data>): Promise<Data[]> {
  const results: Data[] = [];
  const queue = ids.values();
  const work = async () => {
    for (const id of queue) {
      // oxlint-disable-next-line no-await-in-loop -- limits the requests
      await read(id).then(
        (result) => results.push(result),
        () => null,
      );
    }
  };
  await Promise.all(Array.from({ length: MAX_REQUESTS }, work));
  return results;
}

/** How many values a filter of a list can have. */
const MAX_IDS = 100;

/** Reads users by their id, with as few requests as possible. Users who were erased are missing. */
async function readUsers(ids: string[]): Promise<Schema<'User'>[]> {
  const chunks = Array.from({ length: Math.ceil(ids.length / MAX_IDS) }, (_, n) =>
    ids.slice(n * MAX_IDS, (n + 1) * MAX_IDS).join(','),
  );
  const read = (user_id: string) =>
    body(api.GET('/users', { params: { query: { user_id, limit: MAX_IDS } } }));
  const pages = await Promise.all(chunks.map(read));
  return pages.flatMap(({ data }) => data);
}

/** Returns the email addresses of users by their id, once all are loaded: a table that renders once does not move. */
export function useEmails(ids: string[]): Map<string, string | null> {
  const unique = [...new Set(ids)];
  const { data } = useQuery({
    queryKey: ['users', 'emails', unique],
    queryFn: () => readUsers(unique),
    enabled: unique.length > 0,
  });
  return new Map(data?.map(({ id, email }) => [id, email]));
}

const subscriptionQuery = (id: string) =>
  queryOptions({
    queryKey: ['subscriptions', id],
    queryFn: () => body(api.GET('/subscriptions/{id}', { params: { path: { id } } })),
  });

/** Returns subscriptions by their id, once all are loaded. */
export function useSubscriptions(ids: string[]): Map<string, Schema<'Subscription'>> {
  const client = useQueryClient();
  const unique = [...new Set(ids)];
  const { data } = useQuery({
    queryKey: ['subscriptions', 'by-id', unique],
    queryFn: () => readEach(unique, (id) => client.fetchQuery(subscriptionQuery(id))),
    enabled: unique.length > 0,
  });
  return new Map(data?.map((subscription) => [subscription.id, subscription]));
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
