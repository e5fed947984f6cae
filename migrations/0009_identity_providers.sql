-- Who may say who somebody is: for each tenant the providers whose tokens it accepts. In the home cell,
-- with the rest of the directory.

CREATE TABLE identity_providers (
    tenant_id  uuid        NOT NULL REFERENCES tenants,
    -- Compared character by character with what a token says.
    issuer     text        NOT NULL,
    -- A token must be meant for one of these.
    audiences  text[]      NOT NULL CHECK (cardinality(audiences) > 0),
    created_at timestamptz NOT NULL,
    CONSTRAINT identity_providers_issuer PRIMARY KEY (tenant_id, issuer)
);
