// What the customer does in the billing portal.

import { attachPaymentMethod } from '../resources/payment_methods.mjs';
import { payInvoice } from './invoicing.mjs';

/** Makes a card that works the default of a customer and of all subscriptions, and pays the open invoices. */
export function payWithNewCard(ledger, customer) {
  const method = attachPaymentMethod(ledger, 'pm_card_visa', customer);
  ledger.outcomes.delete(customer.id);
  ledger.change(customer, { default_payment_method: method.id }, 'customer.updated');
  for (const subscription of ledger.subscriptions.all('customer', customer.id)) {
    if (['canceled', 'incomplete_expired'].includes(subscription.status)) continue;
    ledger.outcomes.delete(subscription.id);
    ledger.change(subscription, { default_payment_method: method.id }, 'customer.subscription.updated');
    const open = ledger.invoices.all('subscription', subscription.id).filter(({ status }) => status === 'open');
    for (const invoice of open) payInvoice(ledger, invoice, { method });
  }
}
