-- Accounts of a tenant with payment providers, and what the providers report about them.

CREATE TABLE payment_accounts (
    tenant_id           uuid        NOT NULL,
    id                  uuid        NOT NULL,
    provider            text        NOT NULL,
    -- 'test' or 'live'. Notifications of the other mode are refused.
    mode                text        NOT NULL,
    description         text,
    -- The provider's id of the account or store. Notifications that name another one are refused.
    external_account_id text,
    -- Encrypted with a key derived from the master key. Null after the account was deleted.
    api_key             bytea,
    -- Up to where the provider's list of events was read.
    cursor              text,
    -- When a notification was received. Exact to a minute.
    last_heard_at       timestamptz,
    last_reconciled_at  timestamptz,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX payment_accounts_by_age ON payment_accounts (tenant_id, created_at, id) WHERE deleted_at IS NULL;

-- The secrets that verify an account's notifications: one, and for a day after a rotation also the previous one.
CREATE TABLE payment_account_secrets (
    tenant_id  uuid        NOT NULL,
    account_id uuid        NOT NULL,
    id         uuid        NOT NULL,
    -- Encrypted with a key derived from the master key.
    secret     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    -- Null for the present secret.
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, account_id, id)
);

-- The present secret of an account.
CREATE UNIQUE INDEX payment_account_secrets_present ON payment_account_secrets (tenant_id, account_id)
    WHERE expires_at IS NULL;

-- What a provider has an id for: a subscription, an invoice, …. A notification only says that the object may have changed:
-- it increments wanted. A worker notes wanted, reads the object from the provider, applies it and sets seen to what it noted.
CREATE TABLE payment_objects (
    tenant_id        uuid        NOT NULL,
    account_id       uuid        NOT NULL,
    kind             text        NOT NULL,
    external_id      text        NOT NULL COLLATE "C",
    -- The subscription or payment that follows the object.
    record_id        uuid,
    -- The latest fact that was applied, and the provider's version of the object, if it has one.
    fact             jsonb,
    fact_version     text,
    wanted           bigint      NOT NULL,
    seen             bigint      NOT NULL DEFAULT 0,
    -- Since when wanted is greater than seen. Null if both are equal.
    dirty_since      timestamptz,
    -- When a worker must claim the object. Null if wanted equals seen.
    due_at           timestamptz,
    -- Failed attempts since the last success.
    attempts         integer     NOT NULL DEFAULT 0,
    -- Why the last attempt has not applied the object. Null after one that has. An object with a reason that is not due
    -- has failed: a person must repair something.
    reason           text,
    -- What the object waits for: 'subscription', 'plan' or 'user'. Null if it does not wait. It is fetched again when a
    -- record with one of the ids appears, or for a user, when any user is created after waits_since.
    waits_for        text,
    waits_for_ids    text[],
    waits_since      timestamptz,
    -- Incremented by each claim. A worker whose generation is not current must not store anything.
    lease_generation bigint      NOT NULL DEFAULT 0,
    lease_holder     uuid,
    leased_until     timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, kind, external_id)
) WITH (fillfactor = 80);

CREATE INDEX payment_objects_due ON payment_objects (due_at) WHERE due_at IS NOT NULL AND leased_until IS NULL;
CREATE INDEX payment_objects_leased ON payment_objects (leased_until) WHERE leased_until IS NOT NULL;
CREATE INDEX payment_objects_dirty ON payment_objects (tenant_id, account_id) WHERE due_at IS NOT NULL;
CREATE INDEX payment_objects_behind ON payment_objects (dirty_since) WHERE dirty_since IS NOT NULL AND waits_for IS NULL;
CREATE INDEX payment_objects_waiting ON payment_objects (tenant_id, account_id) WHERE waits_for IS NOT NULL;
CREATE INDEX payment_objects_failed ON payment_objects (tenant_id, account_id, updated_at)
    WHERE reason IS NOT NULL AND due_at IS NULL;
CREATE INDEX payment_objects_by_record ON payment_objects (tenant_id, record_id) WHERE record_id IS NOT NULL;

-- The ids of received notifications, to recognize repeated ones. A unique constraint of the partitioned table below would
-- have to contain its time.
CREATE TABLE payment_event_ids (
    tenant_id       uuid        NOT NULL,
    account_id      uuid        NOT NULL,
    event_id        text        NOT NULL COLLATE "C",
    notification_id uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, event_id)
);

CREATE INDEX payment_event_ids_by_age ON payment_event_ids (created_at);

-- Received notifications. A partition per month, so that old ones can be dropped at once.
CREATE TABLE payment_notifications (
    tenant_id       uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    id              uuid        NOT NULL,
    account_id      uuid        NOT NULL,
    -- The provider's id and type of the event.
    event_id        text        NOT NULL COLLATE "C",
    event_type      text        NOT NULL COLLATE "C",
    -- The object that the event is about, if it is of a known type.
    object_kind     text,
    object_id       text        COLLATE "C",
    state           text        NOT NULL,
    -- Why the notification is ignored, waiting, failed or refused.
    reason          text,
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    -- The received bytes, encrypted with a key derived from the master key.
    body            bytea       NOT NULL,
    PRIMARY KEY (tenant_id, created_at, id)
) PARTITION BY RANGE (created_at);

CREATE INDEX payment_notifications_by_id ON payment_notifications (tenant_id, id);
CREATE INDEX payment_notifications_by_state ON payment_notifications (tenant_id, state, created_at, id);
CREATE INDEX payment_notifications_by_object ON payment_notifications (tenant_id, object_id, account_id, created_at)
    WHERE object_id IS NOT NULL;

CREATE TABLE payment_notifications_default PARTITION OF payment_notifications DEFAULT;

-- Creates the partition of the month that `instant` is in, unless it exists. Rows of that month in the default partition
-- move to it.
CREATE FUNCTION payment_notifications_make_month(instant timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first timestamptz := date_trunc('month', instant AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    next  timestamptz := (date_trunc('month', instant AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    month text := 'payment_notifications_' || to_char(first AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    IF to_regclass(month) IS NOT NULL THEN
        RETURN;
    END IF;
    LOCK TABLE payment_notifications_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE payment_notifications INCLUDING ALL)', month);
    EXECUTE format('WITH moved AS (DELETE FROM payment_notifications_default WHERE created_at >= %L AND created_at < %L RETURNING *)
                    INSERT INTO %I SELECT * FROM moved', first, next, month);
    EXECUTE format('ALTER TABLE payment_notifications ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', month, first, next);
END
$$;

-- Creates the partitions of this month and the next two, and of each month with rows in the default partition.
CREATE FUNCTION payment_notifications_make_months() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted timestamptz[] := array(
        SELECT now() + months * interval '1 month' FROM generate_series(0, 2) AS months
        UNION ALL
        SELECT DISTINCT date_trunc('month', created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' FROM payment_notifications_default);
    instant timestamptz;
BEGIN
    FOREACH instant IN ARRAY wanted LOOP
        PERFORM payment_notifications_make_month(instant);
    END LOOP;
END
$$;

-- Drops the partitions of all months whose last notification is more than `keep` days old, and returns their names.
CREATE FUNCTION payment_notifications_drop_older_than(keep integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    oldest text := 'payment_notifications_' || to_char((now() AT TIME ZONE 'UTC') - keep * interval '1 day', 'YYYY_MM');
    month  text;
BEGIN
    IF keep IS NULL OR keep < 1 THEN
        RAISE EXCEPTION 'keep must be at least 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR month IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
        WHERE pg_inherits.inhparent = 'payment_notifications'::regclass
          AND child.relname ~ '^payment_notifications_\d{4}_\d{2}$' AND child.relname < oldest
        ORDER BY child.relname
    LOOP
        EXECUTE format('DROP TABLE %I', month);
        RETURN NEXT month;
    END LOOP;
END
$$;

SELECT payment_notifications_make_months();

-- Run with the privileges of their owner, with a fixed search path and temporary tables last.
DO $$
DECLARE
    signature text;
BEGIN
    FOREACH signature IN ARRAY ARRAY['payment_notifications_make_months()', 'payment_notifications_drop_older_than(integer)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', signature, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    END LOOP;
END
$$;
