// Totals by status and currency, in ISO 4217 minor units, to compare with those of an import.

export function totals(shop) {
  const subscriptions = {};
  for (const { status } of shop.all('subscriptions')) subscriptions[status] = (subscriptions[status] ?? 0) + 1;
  return {
    customers: shop.all('customers').length,
    subscriptions,
    invoices: sums(shop.all('subscription-invoices')),
    orders: sums(shop.all('orders')),
  };
}

function sums(records) {
  const result = {};
  for (const { status, currency, total, refunded_amount } of records) {
    const entry = ((result[status] ??= {})[currency] ??= { count: 0, total: 0, refunded: 0, zero: 0 });
    entry.count += 1;
    entry.total += total;
    entry.refunded += refunded_amount;
    if (total === 0) entry.zero += 1;
  }
  return result;
}
