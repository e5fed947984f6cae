import type { QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  type ErrorComponentProps,
} from '@tanstack/react-router';
import { loadOverview, loadRevenue, loadSubscriber, loadSubscriptions } from './api/screens';
import { parseSearch, searchOf, stringifySearch } from './lib/search';
import { Shell } from './shell/Shell';
import { ButtonLink } from './ui/Button';
import { Empty, Failure, Page } from './ui/Page';

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: Shell,
  notFoundComponent: NotFound,
});
const child = <Path extends string>(path: Path) => ({ getParentRoute: () => root, path });

export const overviewRoute = createRoute({
  ...child('/'),
  validateSearch: searchOf('currency'),
  loader: ({ context }) => loadOverview(context.queries),
  component: lazyRouteComponent(() => import('./screens/Overview')),
});

export const subscribersRoute = createRoute({
  ...child('/subscribers'),
  validateSearch: searchOf('q', 'sort', 'cursor'),
  component: lazyRouteComponent(() => import('./screens/Subscribers')),
});

export const subscriberRoute = createRoute({
  ...child('/subscribers/$id'),
  validateSearch: searchOf('subscription', 'tab'),
  loader: ({ context, params }) => loadSubscriber(context.queries, params.id),
  component: lazyRouteComponent(() => import('./screens/Subscriber')),
});

const subscriptionSearch = searchOf(
  'status',
  'plan',
  'billing_cycle',
  'suspended',
  'access',
  'renews_before',
  'ends_before',
  'sort',
  'cursor',
);

export const subscriptionsRoute = createRoute({
  ...child('/subscriptions'),
  validateSearch: subscriptionSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context, deps }) => loadSubscriptions(context.queries, deps),
  component: lazyRouteComponent(() => import('./screens/Subscriptions')),
});

export const paymentsRoute = createRoute({
  ...child('/payments'),
  validateSearch: searchOf('status', 'currency', 'from', 'to', 'cursor'),
  component: lazyRouteComponent(() => import('./screens/Payments')),
});

const report = searchOf('currency', 'from', 'to', 'interval', 'plan', 'at', 'kind', 'cursor');

export const revenueRoute = createRoute({
  ...child('/revenue'),
  validateSearch: report,
  loaderDeps: ({ search }) => search,
  loader: ({ context, deps }) => loadRevenue(context.queries, deps),
  component: lazyRouteComponent(() => import('./screens/Revenue')),
});

export const changesRoute = createRoute({
  ...child('/revenue/changes'),
  validateSearch: searchOf(
    'kind',
    'started_month',
    'from',
    'to',
    'currency',
    'plan',
    'billing_cycle',
    'cursor',
  ),
  component: lazyRouteComponent(() => import('./screens/Changes')),
});

export const churnRoute = createRoute({
  ...child('/churn'),
  validateSearch: report,
  component: lazyRouteComponent(() => import('./screens/Churn')),
});

export const trialsRoute = createRoute({
  ...child('/trials'),
  validateSearch: report,
  component: lazyRouteComponent(() => import('./screens/Trials')),
});

export const cohortsRoute = createRoute({
  ...child('/cohorts'),
  validateSearch: searchOf('currency', 'by', 'from'),
  component: lazyRouteComponent(() => import('./screens/Cohorts')),
});

export const plansRoute = createRoute({
  ...child('/plans'),
  validateSearch: searchOf('cursor'),
  component: lazyRouteComponent(() => import('./screens/Plans')),
});

export const eventsRoute = createRoute({
  ...child('/events'),
  validateSearch: searchOf('types', 'subject_id', 'after', 'event'),
  component: lazyRouteComponent(() => import('./screens/operate/Events')),
});

export const webhooksRoute = createRoute({
  ...child('/webhooks'),
  validateSearch: searchOf('endpoint', 'attempt', 'cursor'),
  component: lazyRouteComponent(() => import('./screens/operate/Webhooks')),
});

export const paymentAccountsRoute = createRoute({
  ...child('/payment-accounts'),
  validateSearch: searchOf('account', 'state', 'notification', 'cursor'),
  component: lazyRouteComponent(() => import('./screens/operate/PaymentAccounts')),
});

export const apiKeysRoute = createRoute({
  ...child('/api-keys'),
  validateSearch: searchOf('cursor'),
  component: lazyRouteComponent(() => import('./screens/operate/ApiKeys')),
});

export const identityProvidersRoute = createRoute({
  ...child('/identity-providers'),
  validateSearch: searchOf('cursor'),
  component: lazyRouteComponent(() => import('./screens/operate/IdentityProviders')),
});

export const staffRoute = createRoute({
  ...child('/staff'),
  validateSearch: searchOf('cursor'),
  component: lazyRouteComponent(() => import('./screens/operate/Staff')),
});

export const healthRoute = createRoute({
  ...child('/health'),
  component: lazyRouteComponent(() => import('./screens/operate/Health')),
});

export const sandboxRoute = createRoute({
  ...child('/sandbox'),
  component: lazyRouteComponent(() => import('./screens/operate/Sandbox')),
});

const routeTree = root.addChildren([
  overviewRoute,
  subscribersRoute,
  subscriberRoute,
  subscriptionsRoute,
  paymentsRoute,
  revenueRoute,
  changesRoute,
  churnRoute,
  trialsRoute,
  cohortsRoute,
  plansRoute,
  eventsRoute,
  webhooksRoute,
  paymentAccountsRoute,
  apiKeysRoute,
  identityProvidersRoute,
  staffRoute,
  healthRoute,
  sandboxRoute,
]);

export function createConsoleRouter(queries: QueryClient) {
  return createRouter({
    routeTree,
    context: { queries },
    basepath: '/console',
    parseSearch,
    stringifySearch,
    scrollRestoration: true,
    defaultPreload: 'intent',
    defaultErrorComponent: Broken,
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>;
  }
}

function NotFound() {
  return (
    <Page title="Page not found">
      <Empty title="There is no such page">
        <ButtonLink to="/">Go to the overview</ButtonLink>
      </Empty>
    </Page>
  );
}

function Broken({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="Something failed">
      <Failure error={error} retry={reset} />
    </Page>
  );
}
