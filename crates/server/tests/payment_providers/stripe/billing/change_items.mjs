// Changes of price and quantity, with prorations.

import { newId } from '../ids.mjs';
import { boolean, integer, mergeMetadata, oneOf } from '../params.mjs';
import { missing } from '../errors.mjs';
import { invoiceLines, invoicePeriod, periodEnd } from './cycle.mjs';

/**
 * Applies the `items` of an update. Returns an invoice to collect now, if there is one: with `always_invoice`, or if a new
 * billing cycle starts, because the request asks for it or because the interval changes.
 */
export function changeItems(ledger, subscription, params, hasNewCycle) {
  const behavior =
    oneOf(params.proration_behavior, ['create_prorations', 'none', 'always_invoice'], 'proration_behavior') ??
    'create_prorations';
  const interval = () => {
    const { interval: unit, interval_count: count } = ledger.prices.get(subscription.items[0].price);
    return `${count} ${unit}`;
  };
  const oldInterval = interval();
  const credits = behavior === 'none' ? [] : prorations(ledger, subscription, -1);
  subscription.items = mergeItems(ledger, subscription, params.items ?? []);
  const isTrial = subscription.status === 'trialing';
  if (!isTrial && (hasNewCycle || oldInterval !== interval())) {
    const now = ledger.now();
    subscription.pending_lines.push(...credits);
    Object.assign(subscription, { billing_cycle_anchor: now, current_period_start: now });
    subscription.current_period_end = periodEnd(ledger, subscription, now);
    return invoicePeriod(ledger, subscription, 'subscription_update');
  }
  if (isTrial || behavior === 'none') return undefined;
  const lines = [...credits, ...prorations(ledger, subscription, 1)];
  if (behavior === 'always_invoice') return invoiceLines(ledger, subscription, lines, 'subscription_update');
  subscription.pending_lines.push(...lines);
  return undefined;
}

function mergeItems(ledger, subscription, changes) {
  let items = subscription.items.map((item) => ({ ...item }));
  changes.forEach((change, at) => {
    const price = change.price ? ledger.get('price', change.price, `items[${at}][price]`).id : undefined;
    const quantity = integer(change.quantity, `items[${at}][quantity]`);
    if (!change.id) {
      items.push({
        id: newId('si', 14),
        price,
        quantity: quantity ?? 1,
        metadata: mergeMetadata({}, change.metadata),
        created: ledger.now(),
      });
      return;
    }
    const item = items.find(({ id }) => id === change.id);
    if (!item) throw missing('subscription_item', change.id, `items[${at}][id]`, 400);
    if (boolean(change.deleted, 'deleted')) {
      items = items.filter((other) => other !== item);
      return;
    }
    Object.assign(item, {
      price: price ?? item.price,
      quantity: quantity ?? item.quantity,
      metadata: mergeMetadata(item.metadata, change.metadata),
    });
  });
  return items;
}

/** Returns lines for the unused rest of the current period: credits with sign -1, charges with sign 1. */
function prorations(ledger, subscription, sign) {
  const now = ledger.now();
  const { current_period_start: start, current_period_end: end } = subscription;
  const share = Math.max(0, Math.min(1, (end - now) / (end - start)));
  return subscription.items.map((item) => {
    const price = ledger.prices.get(item.price);
    const { name } = ledger.products.get(price.product);
    return {
      amount: sign * Math.round(price.unit_amount * item.quantity * share),
      description: `${sign < 0 ? 'Unused' : 'Remaining'} time on ${name}`,
      price: price.id,
      quantity: item.quantity,
      period: { start: now, end },
      subscription_item: item.id,
      proration: true,
    };
  });
}
