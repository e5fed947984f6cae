-- no-transaction
-- Who of one plan is past due, or active: without reading those who are not. It also tells whether anybody has a plan.
DROP INDEX CONCURRENTLY IF EXISTS subscriptions_of_plan_by_status;
CREATE INDEX CONCURRENTLY subscriptions_of_plan_by_status ON subscriptions (tenant_id, plan_id, status, created_at, id)
    WHERE deleted_at IS NULL;
