/** The screens in the navigation. An entry without its scope is disabled, with the reason. */
export type Entry = { to: string; label: string; scope?: string };
export type Group = { title?: string; entries: Entry[] };

export const NAVIGATION: Group[] = [
  {
    entries: [
      { to: '/', label: 'Overview' },
      { to: '/subscribers', label: 'Subscribers', scope: 'users:read' },
      { to: '/subscriptions', label: 'Subscriptions', scope: 'subscriptions:read' },
    ],
  },
  {
    title: 'Money',
    entries: [
      { to: '/payments', label: 'Payments', scope: 'payments:read' },
      { to: '/revenue', label: 'Revenue', scope: 'reports:read' },
      { to: '/churn', label: 'Churn', scope: 'reports:read' },
      { to: '/trials', label: 'Trials', scope: 'reports:read' },
      { to: '/cohorts', label: 'Cohorts', scope: 'reports:read' },
      { to: '/plans', label: 'Plans', scope: 'plans:read' },
    ],
  },
  {
    title: 'System',
    entries: [
      { to: '/events', label: 'Events', scope: 'events:read' },
      { to: '/webhooks', label: 'Webhooks', scope: 'webhooks:read' },
      { to: '/payment-accounts', label: 'Payment accounts', scope: 'payment_accounts:read' },
      { to: '/api-keys', label: 'API keys', scope: 'clients:read' },
      {
        to: '/identity-providers',
        label: 'Identity providers',
        scope: 'identity_providers:read',
      },
      { to: '/staff', label: 'Staff', scope: 'staff:read' },
      { to: '/health', label: 'Health', scope: 'health:read' },
    ],
  },
];

/** Returns the entry of the navigation that a route belongs to. */
export function entryOf(route: string): Entry | undefined {
  return NAVIGATION.flatMap(({ entries }) => entries).find(
    ({ to }) => route === to || route.startsWith(`${to}/`),
  );
}
