import { formatTimes, timestamp } from '../times.mjs';
import { amountFields, readAmount } from '../money.mjs';
import { unprocessable } from '../errors.mjs';

const STATUS = { pending: 'Pending', paid: 'Paid', void: 'Void', refunded: 'Refunded', partial_refund: 'Partial refund' };

export const subscriptionInvoices = {
  relationships: ['store', 'subscription', 'customer'],
  filters: { store_id: 'store_id', status: 'status', subscription_id: 'subscription_id', refunded: 'refunded' },
  attributes: (shop, invoice) => {
    const amount = (name, value) => amountFields(name, value, invoice.currency, shop.settings);
    return {
      store_id: Number(invoice.store_id),
      subscription_id: Number(invoice.subscription_id),
      customer_id: Number(invoice.customer_id),
      user_name: invoice.user_name,
      user_email: invoice.user_email,
      billing_reason: invoice.billing_reason,
      card_brand: 'visa',
      card_last_four: '4242',
      currency: invoice.currency,
      currency_rate: '1.00000000',
      status: invoice.status,
      status_formatted: STATUS[invoice.status],
      refunded: invoice.refunded,
      refunded_at: timestamp(invoice.refunded_at),
      ...amount('subtotal', invoice.total),
      ...amount('discount_total', 0),
      ...amount('tax', 0),
      tax_inclusive: false,
      ...amount('total', invoice.total),
      ...amount('refunded_amount', invoice.refunded_amount),
      urls: { invoice_url: invoice.status === 'paid' ? `https://stand-in.lemonsqueezy.example/invoices/${invoice.id}` : null },
      ...formatTimes(invoice),
      test_mode: shop.testMode,
    };
  },
};

export function createInvoice(shop, subscription, fields) {
  return shop.insert('subscription-invoices', {
    store_id: subscription.store_id,
    subscription_id: subscription.id,
    customer_id: subscription.customer_id,
    user_name: subscription.user_name,
    user_email: subscription.user_email,
    currency: subscription.currency,
    refunded: false,
    refunded_at: null,
    refunded_amount: 0,
    ...fields,
  });
}

/** Refunds an invoice, in minor units; the rest of it by default. */
export function refundInvoice(shop, invoice, amount = invoice.total - invoice.refunded_amount) {
  const refunded_amount = invoice.refunded_amount + amount;
  if (!['paid', 'partial_refund'].includes(invoice.status) || amount < 1 || refunded_amount > invoice.total) {
    throw unprocessable('/data/attributes/amount', 'The invoice cannot be refunded by this amount.');
  }
  const status = refunded_amount === invoice.total ? 'refunded' : 'partial_refund';
  shop.change(invoice, { refunded_amount, refunded: true, refunded_at: shop.now(), status });
  shop.emit('subscription_payment_refunded', invoice, shop.find('subscriptions', invoice.subscription_id).custom);
  return invoice;
}

function refund({ shop, path, attributes }) {
  const invoice = shop.get('subscription-invoices', path.id);
  return refundInvoice(shop, invoice, readAmount(attributes.amount, invoice.currency, shop.settings.amount_style));
}

export const subscriptionInvoiceRoutes = [['POST', '/v1/subscription-invoices/:id/refund', refund]];
