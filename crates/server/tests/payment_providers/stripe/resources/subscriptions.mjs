import { allow, boolean, emptyable, integer, mergeMetadata, oneOf, required } from '../params.mjs';
import { listPage, Page } from '../lists.mjs';
import { invalid } from '../errors.mjs';
import { attachPaymentMethod } from './payment_methods.mjs';
import { changeItems } from '../billing/change_items.mjs';
import { cancelSubscription } from '../billing/cancel.mjs';
import { endTrial, invoicePeriod, periodEnd } from '../billing/cycle.mjs';
import { finalizeInvoice, payInvoice } from '../billing/invoicing.mjs';
import { startSubscription } from '../billing/start.mjs';
import { copy } from '../ledger.mjs';

const ENDED = ['canceled', 'incomplete_expired'];
const STATUSES = ['incomplete', 'incomplete_expired', 'trialing', 'active', 'past_due', 'canceled', 'unpaid', 'paused'];
const SHARED_FIELDS = [
  'items',
  'metadata',
  'description',
  'default_payment_method',
  'cancel_at',
  'cancel_at_period_end',
  'trial_end',
  'trial_settings',
  'payment_behavior',
  'proration_behavior',
  'collection_method',
  'days_until_due',
  'off_session',
  'expand',
];

function create({ ledger, params }) {
  allow(params, ['customer', 'trial_period_days', 'currency', ...SHARED_FIELDS]);
  const customer = ledger.get('customer', required(params, 'customer'), 'customer');
  const items = required(params, 'items').map((item, at) => ({
    price: ledger.get('price', required(item, 'price'), `items[${at}][price]`).id,
    quantity: integer(item.quantity, `items[${at}][quantity]`) ?? 1,
    metadata: mergeMetadata({}, item.metadata),
  }));
  const subscription = startSubscription(ledger, {
    customer,
    items,
    trial_period_days: integer(params.trial_period_days, 'trial_period_days'),
    trial_end: params.trial_end === 'now' ? undefined : integer(params.trial_end, 'trial_end'),
    payment_behavior: oneOf(
      params.payment_behavior,
      ['allow_incomplete', 'default_incomplete', 'error_if_incomplete', 'pending_if_incomplete'],
      'payment_behavior',
    ),
    metadata: mergeMetadata({}, params.metadata),
    description: params.description || null,
    collection_method:
      oneOf(params.collection_method, ['charge_automatically', 'send_invoice'], 'collection_method') ?? 'charge_automatically',
    days_until_due: integer(params.days_until_due, 'days_until_due') ?? null,
    default_payment_method: params.default_payment_method
      ? attachPaymentMethod(ledger, params.default_payment_method, customer).id
      : null,
    missing_payment_method: params.trial_settings?.end_behavior?.missing_payment_method ?? 'create_invoice',
    ...cancelFields(ledger, params),
  });
  if (subscription.cancel_at_period_end) subscription.cancel_at = subscription.current_period_end;
  return subscription;
}

/** Returns the changes of fields about a scheduled cancellation. */
function cancelFields(ledger, params, subscription) {
  const fields = {};
  const atPeriodEnd = boolean(params.cancel_at_period_end, 'cancel_at_period_end');
  if (atPeriodEnd !== undefined) {
    fields.cancel_at_period_end = atPeriodEnd;
    fields.cancel_at = atPeriodEnd ? (subscription?.current_period_end ?? null) : null;
  }
  if (params.cancel_at !== undefined) {
    fields.cancel_at = params.cancel_at === '' ? null : integer(params.cancel_at, 'cancel_at');
    fields.cancel_at_period_end = false;
  }
  if (Object.keys(fields).length > 0) {
    const isScheduled = fields.cancel_at !== null || fields.cancel_at_period_end;
    fields.canceled_at = isScheduled ? (subscription?.canceled_at ?? ledger.now()) : null;
    fields.cancellation = { comment: null, feedback: null, reason: isScheduled ? 'cancellation_requested' : null };
  }
  return fields;
}

function update({ ledger, params, path }) {
  allow(params, ['pause_collection', 'cancellation_details', 'billing_cycle_anchor', ...SHARED_FIELDS]);
  const subscription = ledger.get('subscription', path.id);
  if (ENDED.includes(subscription.status)) {
    const allowed = ['metadata', 'cancellation_details', 'expand'];
    if (Object.keys(params).some((name) => !allowed.includes(name))) {
      throw invalid('A canceled subscription can only update its cancellation_details and metadata.', {
        code: 'invalid_canceled_subscription_fields',
      });
    }
  }
  const before = copy(subscription);
  const customer = ledger.customers.get(subscription.customer);
  Object.assign(subscription, {
    metadata: mergeMetadata(subscription.metadata, params.metadata),
    description: emptyable(params.description, subscription.description),
    ...cancelFields(ledger, params, subscription),
  });
  if (params.default_payment_method) {
    subscription.default_payment_method = attachPaymentMethod(ledger, params.default_payment_method, customer).id;
  }
  if (params.pause_collection !== undefined) subscription.pause_collection = pauseCollection(params.pause_collection);
  if (params.cancellation_details) {
    const { comment = null, feedback = null } = params.cancellation_details;
    Object.assign(subscription.cancellation, { comment, feedback });
  }
  if (params.trial_end !== undefined && params.trial_end !== 'now') {
    const end = integer(params.trial_end, 'trial_end');
    Object.assign(subscription, { trial_end: end, current_period_end: end, status: 'trialing', billing_cycle_anchor: end });
    subscription.trial_start ??= ledger.now();
  }
  oneOf(params.billing_cycle_anchor, ['now', 'unchanged'], 'billing_cycle_anchor');
  const hasNewCycle = params.billing_cycle_anchor === 'now';
  const invoice = params.items || hasNewCycle ? changeItems(ledger, subscription, params, hasNewCycle) : undefined;
  if (JSON.stringify(before) !== JSON.stringify(subscription)) {
    ledger.emit('customer.subscription.updated', subscription, before);
  }
  if (invoice) {
    finalizeInvoice(ledger, invoice);
    if (invoice.status === 'open') payInvoice(ledger, invoice);
  }
  if (params.trial_end === 'now' && subscription.status === 'trialing') endTrial(ledger, subscription);
  return subscription;
}

function pauseCollection(value) {
  if (value === '') return null;
  return {
    behavior: oneOf(required(value, 'behavior'), ['keep_as_draft', 'mark_uncollectible', 'void'], 'pause_collection[behavior]'),
    resumes_at: integer(value.resumes_at, 'pause_collection[resumes_at]') ?? null,
  };
}

function cancel({ ledger, params, path }) {
  allow(params, ['cancellation_details', 'invoice_now', 'prorate', 'expand']);
  const subscription = ledger.get('subscription', path.id);
  // Stripe treats an ended subscription as a missing one here.
  if (ENDED.includes(subscription.status)) {
    throw invalid(`No such subscription: '${path.id}'`, { code: 'resource_missing', param: 'id' }, 404);
  }
  return cancelSubscription(ledger, subscription, 'cancellation_requested', params.cancellation_details);
}

function pause({ ledger, path }) {
  const subscription = ledger.get('subscription', path.id);
  return ledger.change(subscription, { status: 'paused' }, 'customer.subscription.paused');
}

/** Resumes a paused subscription with a new billing cycle, which is invoiced. */
function resume({ ledger, path }) {
  const subscription = ledger.get('subscription', path.id);
  if (subscription.status !== 'paused') throw invalid('Only paused subscriptions can be resumed.');
  const now = ledger.now();
  const before = copy(subscription);
  Object.assign(subscription, { status: 'active', billing_cycle_anchor: now, current_period_start: now });
  subscription.current_period_end = periodEnd(ledger, subscription, now);
  const invoice = invoicePeriod(ledger, subscription, 'subscription_update');
  ledger.emit('customer.subscription.resumed', subscription, before);
  finalizeInvoice(ledger, invoice);
  if (invoice.status === 'open') payInvoice(ledger, invoice);
  return subscription;
}

function list({ ledger, params }) {
  const status = oneOf(params.status, ['all', 'ended', ...STATUSES], 'status');
  const isWanted = (record) => {
    if (status === 'all') return true;
    if (status === 'ended') return ENDED.includes(record.status);
    // By default, canceled subscriptions are not listed.
    return status ? record.status === status : record.status !== 'canceled';
  };
  const hasPrice = ({ items }) => params.price === undefined || items.some(({ price }) => price === params.price);
  return listPage(ledger.subscriptions, '/v1/subscriptions', params, {
    filters: { customer: 'customer', collection_method: 'collection_method' },
    matches: (record) => isWanted(record) && hasPrice(record),
    also: ['status', 'price'],
  });
}

function listItems({ ledger, params }) {
  const subscription = ledger.get('subscription', required(params, 'subscription'), 'subscription');
  const records = subscription.items.map((item) => ({ ...item, object: 'subscription_item', parent: subscription }));
  return new Page(records, false, '/v1/subscription_items');
}

export const subscriptionRoutes = [
  ['POST', '/v1/subscriptions', create],
  ['GET', '/v1/subscriptions', list],
  ['GET', '/v1/subscriptions/:id', ({ ledger, path }) => ledger.get('subscription', path.id)],
  ['POST', '/v1/subscriptions/:id', update],
  ['DELETE', '/v1/subscriptions/:id', cancel],
  ['POST', '/v1/subscriptions/:id/pause', pause],
  ['POST', '/v1/subscriptions/:id/resume', resume],
  ['GET', '/v1/subscription_items', listItems],
];
