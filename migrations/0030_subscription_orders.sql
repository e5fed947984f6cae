-- no-transaction
-- Orders of the list of subscriptions by renewal and by last change, and the filter by billing cycle.

-- Subscriptions without a renewal sort last. Replaces an index without them and without the id.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_next_renewal;
CREATE INDEX CONCURRENTLY subscriptions_by_next_renewal
    ON subscriptions (tenant_id, (coalesce(renews_at, 'infinity'::timestamptz)), id)
    WHERE deleted_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_renewal;

DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_update;
CREATE INDEX CONCURRENTLY subscriptions_by_update ON subscriptions (tenant_id, updated_at, id)
    WHERE deleted_at IS NULL;

-- In order of creation. Replaces an index of the tenant only.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_suspended_by_age;
CREATE INDEX CONCURRENTLY subscriptions_suspended_by_age ON subscriptions (tenant_id, created_at, id)
    WHERE deleted_at IS NULL AND suspended;
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_suspended;

DROP INDEX CONCURRENTLY IF EXISTS subscriptions_by_cycle;
CREATE INDEX CONCURRENTLY subscriptions_by_cycle ON subscriptions (tenant_id, billing_cycle, created_at, id)
    WHERE deleted_at IS NULL;

-- A plan belongs to one tenant. Without this, the planner multiplies both probabilities and expects too few rows.
CREATE STATISTICS IF NOT EXISTS subscriptions_tenant_of_plan (dependencies) ON tenant_id, plan_id FROM subscriptions;

-- The planner does not use the statistics of the expression in a partial index.
CREATE STATISTICS IF NOT EXISTS subscriptions_next_renewal ON (coalesce(renews_at, 'infinity'::timestamptz))
    FROM subscriptions;
