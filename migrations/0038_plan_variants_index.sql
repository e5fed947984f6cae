-- no-transaction
-- Plans by what is sold at a payment provider.
DROP INDEX CONCURRENTLY IF EXISTS subscription_plans_variants;
CREATE INDEX CONCURRENTLY subscription_plans_variants ON subscription_plans USING gin (variants) WHERE deleted_at IS NULL;

DROP INDEX CONCURRENTLY IF EXISTS subscription_plans_product;
CREATE INDEX CONCURRENTLY subscription_plans_product ON subscription_plans (tenant_id, product_id)
    WHERE deleted_at IS NULL AND product_id IS NOT NULL;
