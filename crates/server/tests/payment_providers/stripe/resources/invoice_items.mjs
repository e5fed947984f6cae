import { allow, currency, integer, mergeMetadata, required } from '../params.mjs';
import { listPage } from '../lists.mjs';

export function invoiceItemView(ledger, item) {
  if (item.deleted) return { id: item.id, object: 'invoiceitem', deleted: true };
  return {
    id: item.id,
    object: 'invoiceitem',
    amount: item.amount,
    currency: item.currency,
    customer: item.customer,
    customer_account: null,
    date: item.created,
    description: item.description,
    discountable: true,
    discounts: [],
    invoice: item.invoice,
    livemode: ledger.livemode,
    metadata: item.metadata,
    net_amount: item.amount,
    parent: null,
    period: { start: item.created, end: item.created },
    pricing: null,
    proration: false,
    quantity: item.quantity,
    quantity_decimal: String(item.quantity),
    tax_rates: [],
    test_clock: null,
  };
}

function create({ ledger, params }) {
  allow(params, ['customer', 'amount', 'currency', 'description', 'metadata', 'expand']);
  return ledger.insert(
    'ii',
    {
      customer: ledger.get('customer', required(params, 'customer'), 'customer').id,
      amount: integer(required(params, 'amount'), 'amount'),
      currency: currency(required(params, 'currency')),
      description: params.description || null,
      invoice: null,
      metadata: mergeMetadata({}, params.metadata),
      quantity: 1,
    },
    'invoiceitem.created',
  );
}

function remove({ ledger, path }) {
  const item = ledger.get('invoiceitem', path.id);
  ledger.emit('invoiceitem.deleted', item);
  item.deleted = true;
  return item;
}

export const invoiceItemRoutes = [
  ['POST', '/v1/invoiceitems', create],
  [
    'GET',
    '/v1/invoiceitems',
    ({ ledger, params }) => listPage(ledger.invoice_items, '/v1/invoiceitems', params, { filters: { customer: 'customer' } }),
  ],
  ['GET', '/v1/invoiceitems/:id', ({ ledger, path }) => ledger.get('invoiceitem', path.id)],
  ['DELETE', '/v1/invoiceitems/:id', remove],
];
