function accountView(ledger) {
  return {
    id: ledger.settings.account_id,
    object: 'account',
    business_type: 'company',
    charges_enabled: true,
    country: 'US',
    created: 1_600_000_000,
    default_currency: 'usd',
    details_submitted: true,
    email: 'owner@example.com',
    metadata: {},
    payouts_enabled: true,
    settings: null,
    type: 'standard',
  };
}

const read = ({ ledger }) => ({ raw: accountView(ledger) });

export const accountRoutes = [
  ['GET', '/v1/account', read],
  ['GET', '/v1/accounts/:id', read],
];
