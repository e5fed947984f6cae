import { allow, boolean, currency, emptyable, integer, mergeMetadata, oneOf, required } from '../params.mjs';
import { listPage } from '../lists.mjs';
import { cardError, invalid } from '../errors.mjs';
import { findPaymentMethod } from './payment_methods.mjs';
import {
  createInvoice,
  finalizeInvoice,
  markPaid,
  markUncollectible,
  payInvoice,
  requireStatus,
  voidInvoice,
} from '../billing/invoicing.mjs';

const DAY = 86_400;

function create({ ledger, params }) {
  allow(params, [
    'customer',
    'description',
    'pending_invoice_items_behavior',
    'collection_method',
    'days_until_due',
    'auto_advance',
    'currency',
    'metadata',
    'expand',
  ]);
  const customer = ledger.get('customer', required(params, 'customer'), 'customer');
  const items =
    params.pending_invoice_items_behavior === 'include'
      ? ledger.invoice_items.all('customer', customer.id).filter(({ deleted, invoice }) => !deleted && !invoice)
      : [];
  const days = integer(params.days_until_due, 'days_until_due');
  const collection_method = oneOf(params.collection_method, ['charge_automatically', 'send_invoice'], 'collection_method');
  if (collection_method === 'send_invoice' && days === undefined) {
    throw invalid('If invoices are sent, days_until_due must be set.', { param: 'days_until_due' });
  }
  const now = ledger.now();
  const invoice = createInvoice(ledger, {
    customer,
    currency: items[0]?.currency ?? currency(params.currency ?? customer.currency ?? 'usd'),
    lines: items.map((item) => ({
      amount: item.amount,
      description: item.description,
      price: null,
      quantity: item.quantity,
      period: { start: now, end: now },
      subscription_item: null,
      proration: false,
      invoice_item: item.id,
    })),
    description: params.description || null,
    collection_method: collection_method ?? 'charge_automatically',
    due_date: days === undefined ? null : now + days * DAY,
    auto_advance: boolean(params.auto_advance, 'auto_advance') ?? false,
    metadata: mergeMetadata({}, params.metadata),
  });
  for (const item of items) item.invoice = invoice.id;
  return invoice;
}

function update({ ledger, params, path }) {
  allow(params, ['description', 'metadata', 'auto_advance', 'expand']);
  const invoice = ledger.get('invoice', path.id);
  return ledger.change(
    invoice,
    {
      description: emptyable(params.description, invoice.description),
      metadata: mergeMetadata(invoice.metadata, params.metadata),
      auto_advance: boolean(params.auto_advance, 'auto_advance') ?? invoice.auto_advance,
    },
    'invoice.updated',
  );
}

function remove({ ledger, path }) {
  const invoice = ledger.get('invoice', path.id);
  requireStatus(invoice, ['draft'], 'delete');
  ledger.emit('invoice.deleted', invoice);
  invoice.deleted = true;
  return invoice;
}

function pay({ ledger, params, path }) {
  allow(params, ['payment_method', 'off_session', 'paid_out_of_band', 'forgive', 'expand']);
  const invoice = ledger.get('invoice', path.id);
  if (invoice.status === 'paid') throw invalid('Invoice is already paid', { code: 'invoice_already_paid' });
  if (invoice.status === 'draft') finalizeInvoice(ledger, invoice);
  if (invoice.status === 'paid') return invoice;
  requireStatus(invoice, ['open', 'uncollectible'], 'pay');
  if (boolean(params.paid_out_of_band, 'paid_out_of_band')) {
    markPaid(ledger, invoice);
    return invoice;
  }
  const method = params.payment_method ? findPaymentMethod(ledger, params.payment_method) : undefined;
  if (!payInvoice(ledger, invoice, { method })) {
    const error = ledger.payment_intents.get(invoice.payment_intent).last_payment_error;
    if (!error)
      throw cardError('This payment requires additional user action.', { code: 'invoice_payment_intent_requires_action' });
    const { message, ...fields } = error;
    throw cardError(message, fields);
  }
  return invoice;
}

function send({ ledger, path }) {
  const invoice = ledger.get('invoice', path.id);
  if (invoice.status === 'draft') finalizeInvoice(ledger, invoice);
  ledger.emit('invoice.sent', invoice);
  return invoice;
}

function list({ ledger, params }) {
  const status = oneOf(params.status, ['draft', 'open', 'paid', 'uncollectible', 'void'], 'status');
  return listPage(ledger.invoices, '/v1/invoices', params, {
    filters: { customer: 'customer', subscription: 'subscription', collection_method: 'collection_method' },
    matches: (record) => !status || record.status === status,
    also: ['status'],
  });
}

const byId =
  (action) =>
  ({ ledger, path }) =>
    action(ledger, ledger.get('invoice', path.id));

export const invoiceRoutes = [
  ['POST', '/v1/invoices', create],
  ['GET', '/v1/invoices', list],
  ['GET', '/v1/invoices/:id', ({ ledger, path }) => ledger.get('invoice', path.id)],
  ['POST', '/v1/invoices/:id', update],
  ['DELETE', '/v1/invoices/:id', remove],
  ['POST', '/v1/invoices/:id/finalize', byId(finalizeInvoice)],
  ['POST', '/v1/invoices/:id/pay', pay],
  ['POST', '/v1/invoices/:id/send', send],
  ['POST', '/v1/invoices/:id/void', byId(voidInvoice)],
  ['POST', '/v1/invoices/:id/mark_uncollectible', byId(markUncollectible)],
];
