// Generated from the OpenAPI document by `pnpm generate`.

/** The paths whose POST accepts an Idempotency-Key. */
export const IDEMPOTENT_PATHS: ReadonlySet<string> = new Set([
  '/checkouts',
  '/clients',
  '/identity-providers',
  '/payment-accounts',
  '/staff',
  '/subscription-payments',
  '/subscription-plans',
  '/subscriptions',
  '/users',
  '/webhook-endpoints',
  '/webhook-endpoints/{id}/replays',
]);
