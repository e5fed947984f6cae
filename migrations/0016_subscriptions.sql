-- Who has which plan, and what was paid for it. Deleted ones stay as rows, for the history.

CREATE TABLE subscriptions (
    tenant_id          uuid        NOT NULL,
    id                 uuid        NOT NULL,
    user_id            uuid        NOT NULL,
    plan_id            uuid        NOT NULL,
    -- What was taken: the plan's price and cycle as they were then.
    price_minor        bigint      NOT NULL CHECK (price_minor BETWEEN 0 AND 1000000000000),
    currency           text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    plan_billing_cycle text        NOT NULL CHECK (plan_billing_cycle IN
        ('daily', 'weekly', 'monthly', 'quarterly', 'semiannual', 'yearly', 'lifetime')),
    external_id        text COLLATE "C",
    billing_cycle      text        NOT NULL CHECK (billing_cycle IN
        ('daily', 'weekly', 'monthly', 'quarterly', 'semiannual', 'yearly', 'lifetime')),
    -- As it was written down last; whoever has passed ends_at is expired, written down or not.
    status             text        NOT NULL CHECK (status IN
        ('pending', 'on_trial', 'active', 'paused', 'past_due', 'unpaid', 'cancelled', 'expired')),
    suspended          boolean     NOT NULL,
    starts_at          timestamptz NOT NULL,
    renews_at          timestamptz CHECK (renews_at >= starts_at),
    ends_at            timestamptz CHECK (ends_at >= starts_at),
    -- From where cycles are counted.
    anchor             timestamptz NOT NULL,
    -- How many of the periods from renews_at on are paid for.
    prepaid            integer     NOT NULL DEFAULT 0 CHECK (prepaid >= 0),
    -- Since when a payment is late.
    late_since         timestamptz,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    deleted_at         timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, plan_id) REFERENCES subscription_plans (tenant_id, id),
    CHECK (status NOT IN ('cancelled', 'expired') OR ends_at IS NOT NULL),
    CHECK (billing_cycle <> 'lifetime' OR renews_at IS NULL),
    CHECK ((late_since IS NOT NULL) = (status IN ('past_due', 'unpaid')))
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX subscriptions_external_id ON subscriptions (tenant_id, external_id)
    WHERE deleted_at IS NULL AND external_id IS NOT NULL;

-- One for each way in which a list is ordered or narrowed.
CREATE INDEX subscriptions_by_age ON subscriptions (tenant_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_of_user ON subscriptions (tenant_id, user_id, created_at, id);
CREATE INDEX subscriptions_of_plan ON subscriptions (tenant_id, plan_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_by_status ON subscriptions (tenant_id, status, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_by_renewal ON subscriptions (tenant_id, renews_at)
    WHERE deleted_at IS NULL AND renews_at IS NOT NULL;
CREATE INDEX subscriptions_by_end ON subscriptions (tenant_id, ends_at)
    WHERE deleted_at IS NULL AND ends_at IS NOT NULL;
CREATE INDEX subscriptions_by_begin ON subscriptions (tenant_id, starts_at) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_suspended ON subscriptions (tenant_id) WHERE deleted_at IS NULL AND suspended;

-- What happens by itself, by the instant that it is due: an end, whoever's it is; and where a tenant has its time moved, a
-- renewal, and from when on a late payment's days are counted.
CREATE INDEX subscriptions_ending ON subscriptions (ends_at)
    WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at IS NOT NULL;
CREATE INDEX subscriptions_due ON subscriptions (tenant_id, status, (coalesce(late_since, renews_at)))
    WHERE deleted_at IS NULL AND external_id IS NULL AND status IN ('on_trial', 'active', 'past_due', 'unpaid');

CREATE TABLE subscription_payments (
    tenant_id       uuid        NOT NULL,
    id              uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    amount_minor    bigint      NOT NULL CHECK (amount_minor BETWEEN 0 AND 1000000000000),
    currency        text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    external_id     text COLLATE "C",
    status          text        NOT NULL CHECK (status IN
        ('pending', 'completed', 'failed', 'partially_refunded', 'refunded', 'disputed', 'void')),
    -- Null if some was given back and nobody said how much.
    refunded_minor  bigint      CHECK (refunded_minor BETWEEN 0 AND amount_minor),
    -- The beginning of the period that it has paid for.
    period          timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    deleted_at      timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);

CREATE UNIQUE INDEX subscription_payments_external_id ON subscription_payments (tenant_id, external_id)
    WHERE deleted_at IS NULL AND external_id IS NOT NULL;
CREATE INDEX subscription_payments_of_subscription
    ON subscription_payments (tenant_id, subscription_id, created_at, id);
