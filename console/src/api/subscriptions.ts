import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body } from './client';

/** The search parameters of the screen of subscriptions. */
export type SubscriptionSearch = {
  status?: string;
  plan?: string;
  billing_cycle?: string;
  suspended?: string;
  access?: string;
  renews_before?: string;
  ends_before?: string;
  sort?: string;
  cursor?: string;
};

/** Returns the parameters of the API. */
export const subscriptionFilter = (search: SubscriptionSearch) => ({
  status: search.status,
  subscription_plan_slug: search.plan,
  billing_cycle: search.billing_cycle,
  suspended: search.suspended,
  is_active: search.access,
  'renews_at[lt]': search.renews_before,
  'ends_at[lt]': search.ends_before,
  sort: (search.sort ?? '-created_at') as '-created_at',
});

export const subscriptionListQuery = (search: SubscriptionSearch) => {
  const query = { ...subscriptionFilter(search), limit: 50, cursor: search.cursor };
  return queryOptions({
    queryKey: ['subscriptions', 'list', query],
    queryFn: () => body(api.GET('/subscriptions', { params: { query } })),
    placeholderData: keepPreviousData,
  });
};
