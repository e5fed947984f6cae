-- What a tenant offers. A deleted plan stays as a row, for the history of those who had it.

CREATE TABLE subscription_plans (
    tenant_id     uuid             NOT NULL,
    id            uuid             NOT NULL,
    slug          text COLLATE "C" NOT NULL,
    name          text             NOT NULL,
    product_id    text,
    variants      text[]           NOT NULL,
    price_minor   bigint           NOT NULL CHECK (price_minor BETWEEN 0 AND 1000000000000),
    currency      text             NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    href          text,
    billing_cycle text             NOT NULL CHECK (billing_cycle IN
        ('daily', 'weekly', 'monthly', 'quarterly', 'semiannual', 'yearly', 'lifetime')),
    description   text,
    node_quota    integer          NOT NULL CHECK (node_quota >= -1),
    features      text,
    most_popular  boolean          NOT NULL,
    tier          integer          NOT NULL CHECK (tier BETWEEN 0 AND 1000),
    is_active     boolean          NOT NULL,
    created_at    timestamptz      NOT NULL,
    updated_at    timestamptz      NOT NULL,
    deleted_at    timestamptz,
    PRIMARY KEY (tenant_id, id)
);

-- A slug is taken regardless of case, and free again when its plan is deleted.
CREATE UNIQUE INDEX subscription_plans_slug ON subscription_plans (tenant_id, lower(slug))
    WHERE deleted_at IS NULL;
