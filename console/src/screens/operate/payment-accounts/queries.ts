import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from '../../../api/client';

export type Account = Schema<'PaymentAccount'>;
export type Notification = Schema<'PaymentNotification'>;

export const accountsQuery = queryOptions({
  queryKey: ['payment-accounts'],
  queryFn: () => body(api.GET('/payment-accounts', { params: { query: { limit: 200 } } })),
});

export const accountQuery = (id: string) =>
  queryOptions({
    queryKey: ['payment-accounts', id],
    queryFn: () => body(api.GET('/payment-accounts/{id}', { params: { path: { id } } })),
  });

type NotificationFilter = { account?: string; state?: string; cursor?: string };

export const notificationsQuery = ({ account, state, cursor }: NotificationFilter) => {
  const query = {
    payment_account_id: account,
    state,
    cursor,
    sort: '-created_at' as const,
    limit: 50,
  };
  return queryOptions({
    queryKey: ['payment-notifications', query],
    queryFn: () => body(api.GET('/payment-notifications', { params: { query } })),
    placeholderData: keepPreviousData,
  });
};

export const notificationQuery = (id: string) =>
  queryOptions({
    queryKey: ['payment-notifications', id],
    queryFn: () => body(api.GET('/payment-notifications/{id}', { params: { path: { id } } })),
  });
