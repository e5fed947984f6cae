// Invoices as the API returns them, in the shapes before and since Basil.

import { embedded } from '../lists.mjs';
import { isBeforeBasil } from '../versions.mjs';
import { planView, priceView } from './prices.mjs';

export function invoiceView(ledger, invoice, version) {
  if (invoice.deleted) return { id: invoice.id, object: 'invoice', deleted: true };
  const isOld = isBeforeBasil(version);
  const lines = invoice.lines.map((line) => (isOld ? oldLine : newLine)(ledger, invoice, line));
  const view = {
    id: invoice.id,
    object: 'invoice',
    account_country: 'US',
    account_name: 'Stand-in',
    account_tax_ids: null,
    amount_due: invoice.amount_due,
    amount_overpaid: 0,
    amount_paid: invoice.amount_paid,
    amount_remaining: invoice.amount_due - invoice.amount_paid,
    amount_shipping: 0,
    application: null,
    attempt_count: invoice.attempt_count,
    attempted: invoice.attempted,
    auto_advance: invoice.status === 'open' && invoice.auto_advance,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null, provider: null, status: null },
    automatically_finalizes_at: null,
    billing_reason: invoice.billing_reason,
    collection_method: invoice.collection_method,
    created: invoice.created,
    currency: invoice.currency,
    custom_fields: null,
    customer: invoice.customer,
    customer_account: null,
    customer_address: null,
    customer_email: invoice.customer_email,
    customer_name: invoice.customer_name,
    customer_phone: null,
    customer_shipping: null,
    customer_tax_exempt: 'none',
    customer_tax_ids: [],
    default_payment_method: null,
    default_source: null,
    default_tax_rates: [],
    description: invoice.description,
    discounts: [],
    due_date: invoice.due_date,
    effective_at: invoice.finalized_at,
    ending_balance: invoice.ending_balance,
    footer: null,
    from_invoice: null,
    hosted_invoice_url: null,
    invoice_pdf: null,
    issuer: { type: 'self' },
    last_finalization_error: null,
    latest_revision: null,
    lines: embedded(lines, `/v1/invoices/${invoice.id}/lines`),
    livemode: ledger.livemode,
    metadata: invoice.metadata,
    next_payment_attempt: invoice.next_payment_attempt,
    number: invoice.number,
    on_behalf_of: null,
    parent:
      invoice.subscription === null
        ? null
        : {
            quote_details: null,
            subscription_details: { metadata: invoice.subscription_metadata, subscription: invoice.subscription },
            type: 'subscription_details',
          },
    payment_settings: { default_mandate: null, payment_method_options: null, payment_method_types: null },
    period_end: invoice.period_end,
    period_start: invoice.period_start,
    post_payment_credit_notes_amount: 0,
    pre_payment_credit_notes_amount: 0,
    receipt_number: null,
    rendering: null,
    shipping_cost: null,
    shipping_details: null,
    starting_balance: invoice.starting_balance,
    statement_descriptor: null,
    status: invoice.status,
    status_transitions: {
      finalized_at: invoice.finalized_at,
      marked_uncollectible_at: invoice.marked_uncollectible_at,
      paid_at: invoice.paid_at,
      voided_at: invoice.voided_at,
    },
    subtotal: invoice.total,
    subtotal_excluding_tax: invoice.total,
    test_clock: null,
    total: invoice.total,
    total_discount_amounts: [],
    total_excluding_tax: invoice.total,
    total_pretax_credit_amounts: [],
    total_taxes: [],
    webhooks_delivered_at: invoice.created,
  };
  return isOld ? oldShape(invoice, view) : view;
}

function oldShape(invoice, view) {
  const { parent, total_taxes, total_pretax_credit_amounts, amount_overpaid, customer_account, ...rest } = view;
  return {
    ...rest,
    charge: invoice.charge,
    discount: null,
    paid: invoice.status === 'paid',
    paid_out_of_band: invoice.status === 'paid' && invoice.amount_due > 0 && invoice.charge === null,
    payment_intent: invoice.payment_intent,
    quote: null,
    subscription: invoice.subscription,
    subscription_details: { metadata: invoice.subscription_metadata },
    tax: null,
    total_tax_amounts: [],
    transfer_data: null,
  };
}

function newLine(ledger, invoice, line) {
  const price = ledger.prices.get(line.price);
  const itemDetails = {
    invoice_item: line.invoice_item ?? null,
    proration: line.proration,
    proration_details: { credited_items: null },
    subscription: invoice.subscription,
  };
  return {
    id: line.id,
    object: 'line_item',
    amount: line.amount,
    currency: invoice.currency,
    description: line.description,
    discount_amounts: [],
    discountable: !line.proration,
    discounts: [],
    invoice: invoice.id,
    livemode: ledger.livemode,
    metadata: {},
    parent: line.subscription_item
      ? {
          invoice_item_details: null,
          subscription_item_details: { ...itemDetails, subscription_item: line.subscription_item },
          type: 'subscription_item_details',
        }
      : { invoice_item_details: itemDetails, subscription_item_details: null, type: 'invoice_item_details' },
    period: line.period,
    pretax_credit_amounts: [],
    pricing: price
      ? {
          price_details: { price: price.id, product: price.product },
          type: 'price_details',
          unit_amount_decimal: String(price.unit_amount),
        }
      : null,
    quantity: line.quantity,
    quantity_decimal: line.quantity === null ? null : String(line.quantity),
    subscription: invoice.subscription,
    subtotal: line.amount,
    taxes: [],
  };
}

function oldLine(ledger, invoice, line) {
  const price = ledger.prices.get(line.price);
  return {
    id: line.id,
    object: 'line_item',
    amount: line.amount,
    amount_excluding_tax: line.amount,
    currency: invoice.currency,
    description: line.description,
    discount_amounts: [],
    discountable: !line.proration,
    discounts: [],
    invoice: invoice.id,
    livemode: ledger.livemode,
    metadata: {},
    period: line.period,
    plan: price ? planView(ledger, price) : null,
    price: price ? priceView(ledger, price) : null,
    proration: line.proration,
    proration_details: { credited_items: null },
    quantity: line.quantity,
    subscription: invoice.subscription,
    subscription_item: line.subscription_item ?? undefined,
    tax_amounts: [],
    tax_rates: [],
    type: line.subscription_item ? 'subscription' : 'invoiceitem',
  };
}
