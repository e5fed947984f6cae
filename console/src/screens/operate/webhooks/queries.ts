import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from '../../../api/client';

export type Endpoint = Schema<'WebhookEndpoint'>;
export type Attempt = Schema<'WebhookAttempt'>;

export const endpointQuery = (id: string) =>
  queryOptions({
    queryKey: ['webhook-endpoints', id],
    queryFn: () => body(api.GET('/webhook-endpoints/{id}', { params: { path: { id } } })),
  });

export const attemptsQuery = (id: string, cursor: string | undefined) =>
  queryOptions({
    queryKey: ['webhook-endpoints', id, 'attempts', cursor],
    queryFn: () =>
      body(
        api.GET('/webhook-endpoints/{id}/attempts', {
          params: { path: { id }, query: { limit: 50, cursor } },
        }),
      ),
    placeholderData: keepPreviousData,
  });
