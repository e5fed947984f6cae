-- A payment from before the ledger counts with at most one period's price. A refund that is taken back or a won
-- dispute returns no more than that.
ALTER TABLE subscription_payments ADD COLUMN ledger_limit bigint;

UPDATE subscription_payments SET ledger_limit = ledger_amount
WHERE status IN ('completed', 'partially_refunded') AND ledger_amount < amount_minor - refunded_minor;
