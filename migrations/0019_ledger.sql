-- Managed billing: money waits as credit until a period starts, and every movement is a ledger entry.

CREATE TABLE ledger_entries (
    tenant_id          uuid        NOT NULL,
    subscription_id    uuid        NOT NULL,
    -- Unique within a subscription: entries of one change are one microsecond apart.
    created_at         timestamptz NOT NULL,
    id                 uuid        NOT NULL,
    type               text        NOT NULL CHECK (type IN
        ('payment', 'refund', 'period', 'change', 'waiver', 'extension')),
    cause              text        NOT NULL,
    currency           text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    amount_minor       bigint      NOT NULL,
    credit_after_minor bigint      NOT NULL,
    payment_id         uuid,
    period_starts_at   timestamptz,
    -- Null with a start: a lifetime.
    period_ends_at     timestamptz,
    plan_id            uuid        NOT NULL,
    quantity           integer     NOT NULL,
    -- None of these for background tasks and commands.
    client_id          uuid,
    user_id            uuid,
    request_id         text,
    PRIMARY KEY (tenant_id, subscription_id, created_at, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);

ALTER TABLE subscription_plans
    ADD COLUMN trial_days integer NOT NULL DEFAULT 0 CHECK (trial_days BETWEEN 0 AND 730);

ALTER TABLE subscriptions
    ADD COLUMN custom_price_minor  bigint,
    ADD COLUMN quantity            integer     NOT NULL DEFAULT 1,
    ADD COLUMN trial_plan_id       uuid,
    ADD COLUMN trial_ends_at       timestamptz,
    ADD COLUMN credit_minor        bigint      NOT NULL DEFAULT 0,
    ADD COLUMN period_starts_at    timestamptz,
    ADD COLUMN period_ends_at      timestamptz,
    ADD COLUMN period_cycle        text,
    ADD COLUMN period_amount_minor bigint,
    ADD COLUMN period_cost_minor   bigint,
    ADD COLUMN period_waived_minor bigint,
    ADD COLUMN managed_since       timestamptz,
    -- When the next transition of managed billing is due; infinity if none is. Null in rows that were
    -- written before this migration: then late_since or renews_at counts.
    ADD COLUMN due_at              timestamptz,
    -- A later migration validates them, without blocking the table.
    ADD CONSTRAINT subscriptions_custom_price CHECK (custom_price_minor BETWEEN 0 AND 1000000000000) NOT VALID,
    ADD CONSTRAINT subscriptions_quantity CHECK (quantity BETWEEN 1 AND 100000) NOT VALID,
    -- In managed billing, a lifetime that is not paid has a due date, and lateness goes on while paused.
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT subscriptions_check3,
    -- squawk-ignore ban-drop-constraint
    DROP CONSTRAINT subscriptions_check4;

ALTER TABLE subscription_payments
    ADD COLUMN paid_at          timestamptz,
    ADD COLUMN failure_reason   text,
    ADD COLUMN period_starts_at timestamptz,
    ADD COLUMN period_ends_at   timestamptz,
    -- The sum of the payment's ledger entries. Null if it has none.
    ADD COLUMN ledger_amount    bigint;
