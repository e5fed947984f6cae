-- no-transaction
-- One index for each order of a list, and for each filter that can select few of many rows.

DROP INDEX CONCURRENTLY IF EXISTS users_external_id;
CREATE UNIQUE INDEX CONCURRENTLY users_external_id ON users (tenant_id, external_id)
    WHERE external_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS users_by_age;
CREATE INDEX CONCURRENTLY users_by_age ON users (tenant_id, created_at, id)
    WHERE erased_at IS NULL;

-- Of all plans, because subscriptions keep deleted ones.
DROP INDEX CONCURRENTLY IF EXISTS subscription_plans_by_slug;
CREATE INDEX CONCURRENTLY subscription_plans_by_slug ON subscription_plans (tenant_id, lower(slug));

DROP INDEX CONCURRENTLY IF EXISTS subscription_payments_by_age;
CREATE INDEX CONCURRENTLY subscription_payments_by_age ON subscription_payments (tenant_id, created_at, id)
    WHERE deleted_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS subscription_payments_by_status;
CREATE INDEX CONCURRENTLY subscription_payments_by_status ON subscription_payments (tenant_id, status, created_at, id)
    WHERE deleted_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS subscription_payments_by_currency;
CREATE INDEX CONCURRENTLY subscription_payments_by_currency ON subscription_payments (tenant_id, currency, created_at, id)
    WHERE deleted_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS subscription_payments_by_paid_at;
CREATE INDEX CONCURRENTLY subscription_payments_by_paid_at ON subscription_payments (tenant_id, paid_at, id)
    WHERE deleted_at IS NULL AND paid_at IS NOT NULL;
