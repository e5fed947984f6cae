-- What was answered to a request that may be sent again. Committed with the effect that it speaks of,
-- so that there is never one without the other.

CREATE TABLE idempotency_keys (
    tenant_id   uuid        NOT NULL,
    -- Of client, user, method, path and the caller's key: what makes it the same request.
    scope_hash  bytea       NOT NULL CHECK (length(scope_hash) = 32),
    -- Of the body: what makes it the same wish.
    fingerprint bytea       NOT NULL CHECK (length(fingerprint) = 32),
    location    text        NOT NULL,
    body        text        NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, scope_hash)
);

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
