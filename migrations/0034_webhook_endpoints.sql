-- Webhook endpoints. An endpoint has one position in its tenant's event log: all events up to it are delivered or have a
-- row in webhook_retries. No payload is copied.

CREATE TABLE webhook_endpoints (
    tenant_id                  uuid        NOT NULL,
    id                         uuid        NOT NULL,
    url                        text        NOT NULL,
    description                text,
    -- Empty: all types that a tenant can see.
    event_types                text[]      NOT NULL,
    delivery_order             text        NOT NULL,
    status                     text        NOT NULL,
    disabled_reason            text,
    disabled_at                timestamptz,
    -- Encrypted with a key derived from the master key. The previous secret signs too until it expires.
    secret                     bytea       NOT NULL,
    previous_secret            bytea,
    previous_secret_expires_at timestamptz,
    created_at                 timestamptz NOT NULL,
    updated_at                 timestamptz NOT NULL,
    deleted_at                 timestamptz,
    -- Delivery.
    position                   bigint      NOT NULL,
    -- When the first failed attempt after the last success was made.
    failing_since              timestamptz,
    -- Failed attempts since the last success.
    failures_in_a_row          integer     NOT NULL DEFAULT 0,
    -- No request is sent before.
    paused_until               timestamptz,
    -- When a process must claim the endpoint, besides when the log grows. May be too early.
    due_at                     timestamptz,
    -- The process that delivers to the endpoint.
    lease_holder               uuid,
    leased_until               timestamptz,
    PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 70);

CREATE INDEX webhook_endpoints_by_age ON webhook_endpoints (tenant_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_enabled ON webhook_endpoints (tenant_id, id) WHERE status = 'enabled' AND deleted_at IS NULL;
CREATE INDEX webhook_endpoints_due ON webhook_endpoints (due_at)
    WHERE due_at IS NOT NULL AND leased_until IS NULL AND status = 'enabled' AND deleted_at IS NULL;
CREATE INDEX webhook_endpoints_leased ON webhook_endpoints (leased_until)
    WHERE leased_until IS NOT NULL AND status = 'enabled' AND deleted_at IS NULL;
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints (failing_since) WHERE failing_since IS NOT NULL;

-- One row per event that failed, or that waits for an earlier event of its subject.
CREATE TABLE webhook_retries (
    tenant_id       uuid        NOT NULL,
    endpoint_id     uuid        NOT NULL,
    position        bigint      NOT NULL,
    subject_id      uuid        NOT NULL,
    failed_attempts integer     NOT NULL,
    -- When the first attempt failed, or when the event started to wait if there was no attempt.
    since           timestamptz NOT NULL,
    -- Null while an earlier event of the subject is retried, and after the event was given up.
    next_attempt_at timestamptz,
    given_up_at     timestamptz,
    PRIMARY KEY (tenant_id, endpoint_id, position)
);

CREATE INDEX webhook_retries_due ON webhook_retries (tenant_id, endpoint_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_retries_by_subject ON webhook_retries (tenant_id, endpoint_id, subject_id, position) WHERE given_up_at IS NULL;
CREATE INDEX webhook_retries_given_up ON webhook_retries (given_up_at) WHERE given_up_at IS NOT NULL;

-- A second pass over a range of positions.
CREATE TABLE webhook_replays (
    tenant_id   uuid        NOT NULL,
    endpoint_id uuid        NOT NULL,
    id          uuid        NOT NULL,
    -- Events after it and up to last_position are sent again. It moves with the replay.
    position      bigint    NOT NULL,
    last_position bigint    NOT NULL,
    event_types text[]      NOT NULL,
    -- Only events that were given up.
    only_failed boolean     NOT NULL,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz,
    PRIMARY KEY (tenant_id, endpoint_id, id)
);

CREATE INDEX webhook_replays_unfinished ON webhook_replays (tenant_id, endpoint_id, id) WHERE finished_at IS NULL;

-- The log of attempts. A partition per day, so that old ones can be dropped at once.
CREATE TABLE webhook_attempts (
    tenant_id   uuid        NOT NULL,
    endpoint_id uuid        NOT NULL,
    created_at  timestamptz NOT NULL,
    id          uuid        NOT NULL,
    event_id    uuid        NOT NULL,
    kind        text        NOT NULL,
    -- Null for a test.
    position    bigint,
    -- 1 for the first attempt.
    attempt     integer     NOT NULL,
    is_success  boolean     NOT NULL,
    -- The HTTP status, or null if there was no response.
    status_code integer,
    error       text,
    duration_ms integer     NOT NULL,
    PRIMARY KEY (tenant_id, endpoint_id, created_at, id)
) PARTITION BY RANGE (created_at);

CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;

-- Creates the partition of the day that `instant` is in, unless it exists. Rows of that day in the default partition move
-- to it.
CREATE FUNCTION webhook_attempts_make_day(instant timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first timestamptz := date_trunc('day', instant AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    next  timestamptz := first + interval '24 hours';
    day   text := 'webhook_attempts_' || to_char(first AT TIME ZONE 'UTC', 'YYYY_MM_DD');
BEGIN
    IF to_regclass(day) IS NOT NULL THEN
        RETURN;
    END IF;
    LOCK TABLE webhook_attempts_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE webhook_attempts INCLUDING ALL)', day);
    EXECUTE format('WITH moved AS (DELETE FROM webhook_attempts_default WHERE created_at >= %L AND created_at < %L RETURNING *)
                    INSERT INTO %I SELECT * FROM moved', first, next, day);
    EXECUTE format('ALTER TABLE webhook_attempts ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', day, first, next);
END
$$;

-- Creates the partitions of today and the next two days, and of each day with rows in the default partition.
CREATE FUNCTION webhook_attempts_make_days() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted timestamptz[] := array(
        SELECT now() + days * interval '24 hours' FROM generate_series(0, 2) AS days
        UNION ALL
        SELECT DISTINCT date_trunc('day', created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' FROM webhook_attempts_default);
    instant timestamptz;
BEGIN
    FOREACH instant IN ARRAY wanted LOOP
        PERFORM webhook_attempts_make_day(instant);
    END LOOP;
END
$$;

-- Drops the partitions of all days before the last `keep` whole days, and returns their names.
CREATE FUNCTION webhook_attempts_drop_days_before(keep integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    oldest text := 'webhook_attempts_' || to_char((now() AT TIME ZONE 'UTC') - keep * interval '1 day', 'YYYY_MM_DD');
    day    text;
BEGIN
    IF keep IS NULL OR keep < 1 THEN
        RAISE EXCEPTION 'keep must be at least 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR day IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
        WHERE pg_inherits.inhparent = 'webhook_attempts'::regclass
          AND child.relname ~ '^webhook_attempts_\d{4}_\d{2}_\d{2}$' AND child.relname < oldest
        ORDER BY child.relname
    LOOP
        EXECUTE format('DROP TABLE %I', day);
        RETURN NEXT day;
    END LOOP;
END
$$;

SELECT webhook_attempts_make_days();

-- Run with the privileges of their owner, with a fixed search path and temporary tables last.
DO $$
DECLARE
    signature text;
BEGIN
    FOREACH signature IN ARRAY ARRAY['webhook_attempts_make_days()', 'webhook_attempts_drop_days_before(integer)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', signature, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    END LOOP;
END
$$;
