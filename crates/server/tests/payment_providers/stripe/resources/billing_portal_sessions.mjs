import { allow, required } from '../params.mjs';
import { newId } from '../ids.mjs';

export function portalSessionView(ledger, session) {
  return {
    id: session.id,
    object: 'billing_portal.session',
    configuration: 'bpc_standIn',
    created: session.created,
    customer: session.customer,
    customer_account: null,
    flow: null,
    livemode: ledger.livemode,
    locale: session.locale,
    on_behalf_of: null,
    return_url: session.return_url,
    url: session.url,
  };
}

function create({ ledger, params, address }) {
  allow(params, ['customer', 'return_url', 'locale', 'configuration', 'expand']);
  return ledger.insert(
    'bps',
    {
      customer: ledger.get('customer', required(params, 'customer'), 'customer').id,
      return_url: params.return_url || null,
      locale: params.locale || null,
      url: `${address()}/p/session/${newId(ledger.livemode ? 'live' : 'test', 40)}`,
    },
    'billing_portal.session.created',
  );
}

export const portalSessionRoutes = [['POST', '/v1/billing_portal/sessions', create]];
