-- no-transaction
-- The next transition of managed billing, in order of its due date. Replaces an index that had only some statuses.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_due_at;
CREATE INDEX CONCURRENTLY subscriptions_due_at ON subscriptions (tenant_id, (coalesce(due_at, late_since, renews_at)))
    WHERE deleted_at IS NULL AND external_id IS NULL AND status <> 'expired';
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_due;
