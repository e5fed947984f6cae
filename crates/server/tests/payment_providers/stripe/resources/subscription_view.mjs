// Subscriptions and their items as the API returns them, in the shapes before and since Basil.

import { embedded } from '../lists.mjs';
import { isBeforeBasil } from '../versions.mjs';
import { planView, priceView } from './prices.mjs';

export function subscriptionItemView(ledger, item, version) {
  const subscription = item.parent;
  const price = ledger.prices.get(item.price);
  const view = {
    id: item.id,
    object: 'subscription_item',
    billing_thresholds: null,
    created: item.created,
    current_period_end: subscription.current_period_end,
    current_period_start: subscription.current_period_start,
    current_trial: null,
    discounts: [],
    metadata: item.metadata,
    plan: planView(ledger, price),
    price: priceView(ledger, price),
    quantity: item.quantity,
    subscription: subscription.id,
    tax_rates: [],
  };
  if (isBeforeBasil(version)) {
    delete view.current_period_end;
    delete view.current_period_start;
    delete view.current_trial;
  }
  return view;
}

export function subscriptionView(ledger, subscription, version) {
  const items = subscription.items.map((item) => subscriptionItemView(ledger, { ...item, parent: subscription }, version));
  const view = {
    id: subscription.id,
    object: 'subscription',
    application: null,
    application_fee_percent: null,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: subscription.billing_cycle_anchor,
    billing_cycle_anchor_config: null,
    billing_mode: { flexible: null, type: 'classic' },
    billing_schedules: [],
    billing_thresholds: null,
    cancel_at: subscription.cancel_at,
    cancel_at_period_end: subscription.cancel_at_period_end,
    canceled_at: subscription.canceled_at,
    cancellation_details: { ...subscription.cancellation, feedback_option: null },
    collection_method: subscription.collection_method,
    created: subscription.created,
    currency: subscription.currency,
    customer: subscription.customer,
    customer_account: null,
    days_until_due: subscription.days_until_due,
    default_payment_method: subscription.default_payment_method,
    default_source: null,
    default_tax_rates: [],
    description: subscription.description,
    discounts: [],
    ended_at: subscription.ended_at,
    invoice_settings: { account_tax_ids: null, custom_fields: null, description: null, footer: null, issuer: { type: 'self' } },
    items: embedded(items, `/v1/subscription_items?subscription=${subscription.id}`),
    latest_invoice: subscription.latest_invoice,
    livemode: ledger.livemode,
    managed_payments: null,
    metadata: subscription.metadata,
    next_pending_invoice_item_invoice: null,
    on_behalf_of: null,
    pause_collection: subscription.pause_collection,
    payment_settings: { payment_method_options: null, payment_method_types: null, save_default_payment_method: 'off' },
    pending_invoice_item_interval: null,
    pending_setup_intent: null,
    pending_update: null,
    schedule: null,
    start_date: subscription.start_date,
    status: subscription.status,
    test_clock: null,
    transfer_data: null,
    trial_end: subscription.trial_end,
    trial_settings: {
      end_behavior: { billing_cycle_anchor: null, missing_payment_method: subscription.missing_payment_method },
    },
    trial_start: subscription.trial_start,
  };
  if (!isBeforeBasil(version)) return view;
  delete view.billing_mode;
  delete view.billing_schedules;
  delete view.managed_payments;
  return {
    ...view,
    current_period_end: subscription.current_period_end,
    current_period_start: subscription.current_period_start,
    discount: null,
    plan: items.length === 1 ? items[0].plan : null,
    quantity: items.length === 1 ? items[0].quantity : null,
  };
}
