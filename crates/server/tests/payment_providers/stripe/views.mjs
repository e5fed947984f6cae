// Records as the API returns them, and the properties that requests can expand.

import { embedded } from './lists.mjs';
import { chargeView } from './resources/charges.mjs';
import { checkoutLines, checkoutSessionView } from './resources/checkout_sessions.mjs';
import { customerView } from './resources/customers.mjs';
import { disputeView } from './resources/disputes.mjs';
import { eventDestinationView } from './resources/event_destinations.mjs';
import { eventView } from './resources/events.mjs';
import { invoiceItemView } from './resources/invoice_items.mjs';
import { invoicePaymentView } from './resources/invoice_payments.mjs';
import { invoiceView } from './resources/invoice_view.mjs';
import { paymentIntentView } from './resources/payment_intents.mjs';
import { paymentMethodView } from './resources/payment_methods.mjs';
import { portalSessionView } from './resources/billing_portal_sessions.mjs';
import { priceView } from './resources/prices.mjs';
import { productView } from './resources/products.mjs';
import { refundView } from './resources/refunds.mjs';
import { subscriptionItemView, subscriptionView } from './resources/subscription_view.mjs';
import { webhookEndpointView } from './resources/webhook_endpoints.mjs';

const VIEWS = {
  'billing_portal.session': portalSessionView,
  charge: chargeView,
  'checkout.session': checkoutSessionView,
  customer: customerView,
  dispute: disputeView,
  // The list of events has the default version of the account; webhooks have that of their endpoint.
  event: (ledger, event) => eventView(ledger, event, ledger.settings.api_version),
  invoice: invoiceView,
  invoice_payment: invoicePaymentView,
  invoiceitem: invoiceItemView,
  payment_intent: paymentIntentView,
  payment_method: paymentMethodView,
  price: priceView,
  product: productView,
  refund: refundView,
  subscription: subscriptionView,
  subscription_item: subscriptionItemView,
  'v2.core.event_destination': (ledger, destination) => eventDestinationView(ledger, destination),
  webhook_endpoint: webhookEndpointView,
};

export function render(ledger, record, version) {
  const view = VIEWS[record.object](ledger, record, version);
  return record.overrides ? { ...view, ...record.overrides } : view;
}

/** Lists that objects contain only if a request expands them. */
export const INCLUDABLE = {
  charge: {
    refunds: (ledger, { id }, version) =>
      rendered(ledger, ledger.refunds.all('charge', id), version, `/v1/charges/${id}/refunds`),
  },
  'checkout.session': {
    line_items: (ledger, { id }) => embedded(checkoutLines(ledger, ledger.find(id)), `/v1/checkout/sessions/${id}/line_items`),
  },
  customer: {
    subscriptions: (ledger, { id }, version) =>
      rendered(
        ledger,
        ledger.subscriptions.all('customer', id).filter(({ status }) => status !== 'canceled'),
        version,
        `/v1/customers/${id}/subscriptions`,
      ),
  },
  invoice: {
    payments: (ledger, { id }, version) =>
      rendered(ledger, ledger.invoice_payments.all('invoice', id), version, '/v1/invoice_payments'),
  },
};

function rendered(ledger, records, version, url) {
  return embedded(
    records.map((record) => render(ledger, record, version)),
    url,
  );
}
