-- A client's own ids of users, and pairs that it attaches to records. Nullable, or with a constant default: no table is
-- rewritten, and the previous version leaves the columns alone.
ALTER TABLE users
    ADD COLUMN external_id text COLLATE "C",
    ADD COLUMN metadata    jsonb NOT NULL DEFAULT '{}',
    -- Null until the first change after this migration: then created_at counts.
    ADD COLUMN updated_at  timestamptz;

ALTER TABLE subscription_plans ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
ALTER TABLE subscriptions ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
ALTER TABLE subscription_payments ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
