-- What a payment provider must be told about one of its subscriptions: the latest command. It is sent until the provider
-- acknowledges it.
CREATE TABLE payment_commands (
    tenant_id        uuid        NOT NULL,
    account_id       uuid        NOT NULL,
    -- The provider's id of the subscription.
    external_id      text        NOT NULL COLLATE "C",
    -- 'cancel' at the end of the period, 'resume' before it, or 'end' at once.
    command          text        NOT NULL,
    -- Incremented by each new command. A worker acknowledges only the version that it sent.
    version          bigint      NOT NULL DEFAULT 1,
    -- Failed attempts to send this version, and why the last one failed.
    attempts         integer     NOT NULL DEFAULT 0,
    reason           text,
    -- Null after the acknowledgment.
    next_attempt_at  timestamptz,
    acknowledged_at  timestamptz,
    -- Incremented by each claim. Commands about one subscription are not sent at the same time.
    lease_generation bigint      NOT NULL DEFAULT 0,
    leased_until     timestamptz,
    created_at       timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, external_id)
);

CREATE INDEX payment_commands_due ON payment_commands (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX payment_commands_pending ON payment_commands (tenant_id, account_id, created_at) WHERE acknowledged_at IS NULL;
