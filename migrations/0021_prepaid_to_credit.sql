-- Prepaid periods become credit, so that each subscription stays covered as long as before. Only managed billing
-- has ever counted prepaid periods. Its own migration: rows are locked here, not tables.

-- One row for each prepaid period, with the payment that paid for it. A payment counts with what was not
-- refunded, up to one period's price. A refund or a dispute did not take a period back, so those payments are
-- left out: nothing that happens to them later moves the credit.
CREATE TEMPORARY TABLE prepaid ON COMMIT DROP AS
SELECT subscriptions.tenant_id, subscriptions.id AS subscription_id, subscriptions.updated_at, subscriptions.price_minor,
       subscriptions.currency, subscriptions.plan_id, number, payments.id AS payment_id,
       coalesce(least(subscriptions.price_minor, payments.paid_minor), 0) AS paid_minor
FROM subscriptions
CROSS JOIN LATERAL generate_series(1, subscriptions.prepaid) AS number
LEFT JOIN LATERAL (
    SELECT id, amount_minor - refunded_minor AS paid_minor,
           row_number() OVER (ORDER BY period, created_at, id) AS number
    FROM subscription_payments
    WHERE tenant_id = subscriptions.tenant_id AND subscription_id = subscriptions.id AND deleted_at IS NULL
      AND status IN ('completed', 'partially_refunded') AND amount_minor > refunded_minor
      AND currency = subscriptions.currency AND period >= subscriptions.renews_at) AS payments USING (number)
WHERE subscriptions.prepaid > 0 AND subscriptions.price_minor > 0
  AND subscriptions.billing_cycle = subscriptions.plan_billing_cycle;

-- The entries precede everything that managed billing posts later, which is after updated_at. A second entry,
-- without a payment, has what the payment lacks: a period stays prepaid when the plan becomes dearer.
INSERT INTO ledger_entries (tenant_id, subscription_id, created_at, id, type, cause, currency, amount_minor,
    credit_after_minor, payment_id, plan_id, quantity)
SELECT tenant_id, subscription_id,
    updated_at - (count(*) OVER whole - row_number() OVER so_far) * interval '1 microsecond',
    gen_random_uuid(), 'payment', 'payment', currency, amount_minor, sum(amount_minor) OVER so_far, paid_by, plan_id, 1
FROM prepaid,
    LATERAL (VALUES (1, paid_minor, payment_id), (2, price_minor - paid_minor, NULL::uuid)) AS entry (part, amount_minor, paid_by)
WHERE amount_minor > 0
WINDOW whole AS (PARTITION BY tenant_id, subscription_id),
    so_far AS (PARTITION BY tenant_id, subscription_id ORDER BY number, part);

-- A refund later takes at most what the payment brought.
UPDATE subscription_payments SET ledger_amount = prepaid.paid_minor
FROM prepaid
WHERE subscription_payments.tenant_id = prepaid.tenant_id AND subscription_payments.id = prepaid.payment_id;

UPDATE subscriptions SET credit_minor = total.credit, prepaid = 0
FROM (SELECT tenant_id, subscription_id, sum(price_minor) AS credit FROM prepaid GROUP BY 1, 2) AS total
WHERE subscriptions.tenant_id = total.tenant_id AND subscriptions.id = total.subscription_id;

-- Without a price, a period cannot be charged: the prepaid time becomes free time, and the subscription is
-- recorded until a price is set. Renewal dates are whole cycles from the anchor, in UTC.
CREATE TEMPORARY TABLE unpriced ON COMMIT DROP AS
SELECT tenant_id, id, currency, plan_id, updated_at, renews_at,
       (local_anchor + (next_number + prepaid - 1) * step) AT TIME ZONE 'UTC' AS covered_until
FROM subscriptions,
    LATERAL (SELECT anchor AT TIME ZONE 'UTC' AS local_anchor, renews_at AT TIME ZONE 'UTC' AS local_renewal,
        CASE billing_cycle WHEN 'daily' THEN interval '1 day' WHEN 'weekly' THEN interval '7 days'
            WHEN 'monthly' THEN interval '1 month' WHEN 'quarterly' THEN interval '3 months'
            WHEN 'semiannual' THEN interval '6 months' ELSE interval '1 year' END AS step) AS cycle,
    LATERAL (SELECT CASE WHEN billing_cycle IN ('daily', 'weekly')
        THEN floor(extract(epoch FROM local_renewal - local_anchor) / extract(epoch FROM step))
        ELSE floor((12 * (extract(year FROM local_renewal) - extract(year FROM local_anchor))
            + extract(month FROM local_renewal) - extract(month FROM local_anchor))
            / (12 * extract(year FROM step) + extract(month FROM step))) END::integer AS estimate) AS estimated,
    LATERAL (SELECT min(number) AS next_number FROM generate_series(estimate - 1, estimate + 1) AS number
        WHERE local_anchor + number * step > local_renewal) AS following
WHERE prepaid > 0 AND renews_at IS NOT NULL AND billing_cycle <> 'lifetime' AND billing_cycle <> plan_billing_cycle;

INSERT INTO ledger_entries (tenant_id, subscription_id, created_at, id, type, cause, currency, amount_minor,
    credit_after_minor, period_starts_at, period_ends_at, plan_id, quantity)
SELECT tenant_id, id, updated_at, gen_random_uuid(), 'extension', 'managed', currency, 0, 0, renews_at, covered_until, plan_id, 1
FROM unpriced;

UPDATE subscriptions SET renews_at = covered_until, prepaid = 0
FROM unpriced
WHERE subscriptions.tenant_id = unpriced.tenant_id AND subscriptions.id = unpriced.id;

ALTER TABLE subscriptions VALIDATE CONSTRAINT subscriptions_custom_price;
ALTER TABLE subscriptions VALIDATE CONSTRAINT subscriptions_quantity;
