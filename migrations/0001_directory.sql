-- The instance, its tenants and their clients. In every cell, so that all have one schema; read and
-- written in the home cell only.

CREATE TABLE instance (
    only_one         boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (only_one),
    mode             text        NOT NULL CHECK (mode IN ('live', 'sandbox')),
    -- Tells whether a master key is the one that this database was set up with, without telling it.
    master_key_check bytea,
    created_at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tenants (
    tenant_id        uuid        NOT NULL PRIMARY KEY,
    name             text        NOT NULL,
    cell             text        NOT NULL,
    default_currency text        NOT NULL CHECK (default_currency ~ '^[A-Z]{3}$'),
    created_at       timestamptz NOT NULL,
    CONSTRAINT tenants_name UNIQUE (name)
);

CREATE TABLE clients (
    tenant_id       uuid        NOT NULL REFERENCES tenants,
    id              uuid        NOT NULL,
    kind            text        NOT NULL CHECK (kind IN ('secret', 'publishable')),
    name            text        NOT NULL,
    scopes          text[]      NOT NULL,
    allow_addresses text[]      NOT NULL,
    allowed_origins text[]      NOT NULL,
    created_at      timestamptz NOT NULL,
    disabled_at     timestamptz,
    PRIMARY KEY (tenant_id, id)
);

-- The values of the header client-id, as SHA-256: two live ones while a client is being rotated.
CREATE TABLE client_values (
    tenant_id  uuid        NOT NULL,
    client_id  uuid        NOT NULL,
    value_hash bytea       NOT NULL CHECK (length(value_hash) = 32),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, client_id, value_hash),
    FOREIGN KEY (tenant_id, client_id) REFERENCES clients (tenant_id, id),
    -- The one look-up that cannot name the tenant: it is what finds it.
    CONSTRAINT client_values_hash UNIQUE (value_hash)
);
