// Totals by status and currency, to compare with those of an import.

/** Returns counts of subscriptions by status, and counts and amounts of invoices by status and currency. */
export function totals(ledger) {
  const subscriptions = {};
  for (const { status } of ledger.subscriptions.all()) subscriptions[status] = (subscriptions[status] ?? 0) + 1;
  const invoices = {};
  for (const { deleted, status, currency, total, amount_due, amount_paid, attempt_count } of ledger.invoices.all()) {
    if (deleted) continue;
    const entry = ((invoices[status] ??= {})[currency] ??= {
      count: 0,
      total: 0,
      amount_due: 0,
      amount_paid: 0,
      zero: 0,
      attempted: 0,
    });
    entry.count += 1;
    entry.total += total;
    entry.amount_due += amount_due;
    entry.amount_paid += amount_paid;
    if (amount_due === 0) entry.zero += 1;
    if (attempt_count > 0) entry.attempted += 1;
  }
  const refunded = {};
  for (const { currency, amount_refunded } of ledger.charges.all()) {
    if (amount_refunded > 0) refunded[currency] = (refunded[currency] ?? 0) + amount_refunded;
  }
  const disputes = {};
  for (const { status } of ledger.disputes.all()) disputes[status] = (disputes[status] ?? 0) + 1;
  const customers = ledger.customers.all().filter(({ deleted }) => !deleted).length;
  return { customers, subscriptions, invoices, refunded, disputes };
}
