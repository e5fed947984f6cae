-- Staff members, who work with the console. In the home cell, with the tenants and clients.

CREATE TABLE staff_members (
    id                uuid        NOT NULL PRIMARY KEY,
    -- NULL for a member of all tenants.
    tenant_id         uuid        REFERENCES tenants,
    -- As it was entered, and normalized. NULL for the member that links without an email address sign in.
    email             text,
    email_key         text        COLLATE "C",
    role              text        NOT NULL CHECK (role IN ('viewer', 'support', 'finance', 'admin')),
    -- Whether the person is a member because of a group of the identity provider, and was not invited.
    is_by_group       boolean     NOT NULL,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    last_signed_in_at timestamptz,
    -- Kept for the names in the event log.
    removed_at        timestamptz
);

CREATE UNIQUE INDEX staff_members_email ON staff_members (tenant_id, email_key) NULLS NOT DISTINCT
    WHERE removed_at IS NULL AND email_key IS NOT NULL;
CREATE UNIQUE INDEX staff_members_without_email ON staff_members (tenant_id, role) NULLS NOT DISTINCT
    WHERE removed_at IS NULL AND email_key IS NULL;

-- One-time sign-in links, by the SHA-256 of their secret. Deleted when they are used.
CREATE TABLE staff_links (
    token_hash bytea       NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    staff_id   uuid        NOT NULL REFERENCES staff_members ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);

-- Sessions of staff members, by the SHA-256 of the cookie.
CREATE TABLE staff_sessions (
    token_hash   bytea       NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    staff_id     uuid        NOT NULL REFERENCES staff_members ON DELETE CASCADE,
    -- The tenant whose data the member works with.
    tenant_id    uuid        NOT NULL REFERENCES tenants ON DELETE CASCADE,
    created_at   timestamptz NOT NULL,
    -- Written at most once a minute.
    last_used_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);

-- The staff member who made the change.
ALTER TABLE events ADD COLUMN staff_id uuid;
