// Event types of the resources in this stand-in, as the SDK lists them for webhook endpoints.

export const EVENT_TYPES = new Set([
  'billing_portal.configuration.created', 'billing_portal.configuration.updated', 'billing_portal.session.created',
  'charge.captured', 'charge.dispute.closed', 'charge.dispute.created', 'charge.dispute.funds_reinstated',
  'charge.dispute.funds_withdrawn', 'charge.dispute.updated', 'charge.expired', 'charge.failed', 'charge.pending',
  'charge.refund.updated', 'charge.refunded', 'charge.succeeded', 'charge.updated', 'checkout.session.async_payment_failed',
  'checkout.session.async_payment_succeeded', 'checkout.session.completed', 'checkout.session.expired', 'customer.created',
  'customer.deleted', 'customer.subscription.created', 'customer.subscription.deleted', 'customer.subscription.paused',
  'customer.subscription.pending_update_applied', 'customer.subscription.pending_update_expired',
  'customer.subscription.resumed', 'customer.subscription.trial_will_end', 'customer.subscription.updated', 'customer.updated',
  'invoice.created', 'invoice.deleted', 'invoice.finalization_failed', 'invoice.finalized', 'invoice.marked_uncollectible',
  'invoice.overdue', 'invoice.overpaid', 'invoice.paid', 'invoice.payment_action_required', 'invoice.payment_attempt_required',
  'invoice.payment_failed', 'invoice.payment_succeeded', 'invoice.sent', 'invoice.upcoming', 'invoice.updated',
  'invoice.voided', 'invoice.will_be_due', 'invoice_payment.paid', 'invoiceitem.created', 'invoiceitem.deleted',
  'payment_intent.amount_capturable_updated', 'payment_intent.canceled', 'payment_intent.created',
  'payment_intent.partially_funded', 'payment_intent.payment_failed', 'payment_intent.processing',
  'payment_intent.requires_action', 'payment_intent.succeeded', 'payment_method.attached',
  'payment_method.automatically_updated', 'payment_method.detached', 'payment_method.updated', 'plan.created', 'plan.deleted',
  'plan.updated', 'price.created', 'price.deleted', 'price.updated', 'product.created', 'product.deleted', 'product.updated',
  'refund.created', 'refund.failed', 'refund.updated',
]);
