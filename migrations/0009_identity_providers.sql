-- Who may say who somebody is: for each tenant the providers whose tokens it accepts. In the home cell,
-- with the rest of the directory.

CREATE TABLE identity_providers (
    tenant_id     uuid        NOT NULL REFERENCES tenants,
    -- Compared character by character with what a token says.
    issuer        text        NOT NULL,
    -- A token must be meant for one of these; only userinfo cannot say for whom.
    audiences     text[]      NOT NULL CHECK (verify = 'userinfo' OR cardinality(audiences) > 0),
    verify        text        NOT NULL CHECK (verify IN ('jwt', 'introspection', 'tokeninfo', 'userinfo')),
    -- Where the provider is asked about a token, if its discovery document does not say.
    endpoint      text,
    -- Who asks, at an introspection endpoint. The secret is sealed under the master key.
    client_id     text,
    client_secret bytea,
    created_at    timestamptz NOT NULL,
    CONSTRAINT identity_providers_issuer PRIMARY KEY (tenant_id, issuer)
);

-- An opaque token does not say who made it, and must not be shown to one provider after the other.
CREATE UNIQUE INDEX identity_providers_opaque ON identity_providers (tenant_id) WHERE verify <> 'jwt';
