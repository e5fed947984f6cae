// Starts the requests of a screen while its code loads.
import type { QueryClient } from '@tanstack/react-query';
import {
  accessLossQuery,
  countsQuery,
  plansQuery,
  trialsEndingQuery,
  webhookEndpointsQuery,
} from './records';
import {
  overviewChurnQuery,
  overviewRevenueQuery,
  reportParams,
  revenueQuery,
  type ReportSearch,
} from './reports';
import { sessionQuery, type Session } from './session';
import { subscriptionListQuery, type SubscriptionSearch } from './subscriptions';
import {
  entitlementsQuery,
  identitiesQuery,
  sessionsQuery,
  timelineQuery,
  userPaymentsQuery,
  userQuery,
  userSubscriptionsQuery,
} from './users';

const can = ({ staff_member }: Session, scope: string) => staff_member.scopes.includes(scope);
const nowOf = ({ clockOffset }: Session) => Date.now() + clockOffset;

/** Calls `start` as soon as a session is known. Errors are left to the components that need the data. */
async function withSession(client: QueryClient, start: (session: Session) => void): Promise<void> {
  const session = await client.ensureQueryData(sessionQuery).catch(() => null);
  if (session) start(session);
}

export function loadOverview(client: QueryClient): void {
  void withSession(client, (session) => {
    const now = nowOf(session);
    void client.prefetchQuery(countsQuery);
    void client.prefetchQuery(trialsEndingQuery(now));
    void client.prefetchQuery(accessLossQuery);
    if (can(session, 'webhooks:read')) void client.prefetchQuery(webhookEndpointsQuery);
    if (!can(session, 'reports:read')) return;
    void client.prefetchQuery(overviewRevenueQuery(now));
    void client.prefetchQuery(overviewChurnQuery(now));
  });
}

export function loadRevenue(client: QueryClient, search: ReportSearch): void {
  void withSession(client, (session) => {
    if (!can(session, 'reports:read')) return;
    void client.prefetchQuery(revenueQuery(reportParams(search, nowOf(session))));
  });
}

export function loadSubscriptions(client: QueryClient, search: SubscriptionSearch): void {
  void withSession(client, () => {
    void client.prefetchQuery(subscriptionListQuery(search));
    void client.prefetchQuery(countsQuery);
    void client.prefetchQuery(plansQuery);
  });
}

export function loadSubscriber(client: QueryClient, id: string): void {
  void withSession(client, (session) => {
    void client.prefetchQuery(userQuery(id));
    void client.prefetchQuery(timelineQuery(id));
    void client.prefetchQuery(userSubscriptionsQuery(id));
    void client.prefetchQuery(entitlementsQuery(id));
    void client.prefetchQuery(identitiesQuery(id));
    void client.prefetchQuery(sessionsQuery(id));
    if (can(session, 'payments:read')) void client.prefetchQuery(userPaymentsQuery(id));
  });
}
