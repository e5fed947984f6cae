-- The keys that sign access tokens, for all tenants. In the home cell. The private halves are sealed under the
-- master key.

CREATE TABLE signing_keys (
    id             uuid        NOT NULL PRIMARY KEY,
    algorithm      text        NOT NULL CHECK (algorithm IN ('EdDSA', 'ES256')),
    public_key     bytea       NOT NULL,
    private_key    bytea       NOT NULL,
    created_at     timestamptz NOT NULL,
    -- Published before it is used, so that whoever verifies tokens has seen it.
    signs_from     timestamptz NOT NULL,
    -- Accepted until the last token that it signed has ended; null while it may still sign.
    accepted_until timestamptz
);
