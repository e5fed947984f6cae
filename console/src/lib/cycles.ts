export const BILLING_CYCLES = [
  'daily',
  'weekly',
  'monthly',
  'quarterly',
  'semiannual',
  'yearly',
  'lifetime',
];
