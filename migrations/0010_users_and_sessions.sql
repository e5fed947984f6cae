-- End users, how identity providers call them, and their sign-ins.

CREATE TABLE users (
    tenant_id  uuid        NOT NULL,
    id         uuid        NOT NULL,
    -- As it was written, and what it is compared by.
    email      text        NOT NULL,
    email_key  text        NOT NULL COLLATE "C",
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT users_email UNIQUE (tenant_id, email_key)
);

-- A user without one was made ahead of time, and is bound at the first sign-up with its e-mail address.
CREATE TABLE identities (
    tenant_id  uuid        NOT NULL,
    issuer     text        NOT NULL COLLATE "C",
    subject    text        NOT NULL COLLATE "C",
    user_id    uuid        NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT identities_subject PRIMARY KEY (tenant_id, issuer, subject),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
);

CREATE INDEX identities_user ON identities (tenant_id, user_id);

-- One row per sign-in, however often it is refreshed. Holds nothing that could be used as a token: a refresh
-- token is made from the salt under a key that is not here. What a refresh or a use changes is in no index,
-- and there is room in the page, so that the row stays where it is.
CREATE TABLE sessions (
    tenant_id            uuid        NOT NULL,
    id                   uuid        NOT NULL,
    user_id              uuid        NOT NULL,
    -- The client that began it; clients are in the home cell.
    client_id            uuid        NOT NULL,
    issuer               text        NOT NULL,
    address              inet        NOT NULL,
    user_agent           text,
    salt                 bytea       NOT NULL CHECK (length(salt) = 16),
    generation           integer     NOT NULL CHECK (generation >= 0),
    confirmed_generation integer     NOT NULL CHECK (confirmed_generation BETWEEN 0 AND generation),
    refreshed_at         timestamptz NOT NULL,
    created_at           timestamptz NOT NULL,
    last_used_at         timestamptz NOT NULL,
    expires_at           timestamptz NOT NULL,
    ended_at             timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
) WITH (fillfactor = 80);

CREATE INDEX sessions_of_user ON sessions (tenant_id, user_id, created_at, id);
