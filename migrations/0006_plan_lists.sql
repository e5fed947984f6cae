-- no-transaction
-- A page of plans costs the same wherever it is: each order has its index.

DROP INDEX CONCURRENTLY IF EXISTS subscription_plans_by_age;

CREATE INDEX CONCURRENTLY subscription_plans_by_age ON subscription_plans (tenant_id, created_at, id)
    WHERE deleted_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS subscription_plans_by_tier;

CREATE INDEX CONCURRENTLY subscription_plans_by_tier ON subscription_plans (tenant_id, tier, id)
    WHERE deleted_at IS NULL;
