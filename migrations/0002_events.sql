-- One row per change of state, written in the transaction that makes the change. The audit trail,
-- and the source of everything that is told to others. A partition per month, so that old ones can
-- be dropped at once.

CREATE TABLE events (
    tenant_id  uuid        NOT NULL,
    at         timestamptz NOT NULL,
    id         uuid        NOT NULL,
    kind       text        NOT NULL,
    -- What was changed: the id of a plan, a client, …; the kind's first word says which.
    subject_id uuid        NOT NULL,
    -- Who did it. Neither for background work and the command line.
    client_id  uuid,
    user_id    uuid,
    request_id text,
    data       jsonb       NOT NULL,
    PRIMARY KEY (tenant_id, at, id)
) PARTITION BY RANGE (at);

CREATE INDEX events_subject ON events (tenant_id, subject_id, at);

-- Catches what no month was made for, so that a late housekeeper never stops a payment.
CREATE TABLE events_default PARTITION OF events DEFAULT;

-- Makes the partition of the month that `instant` is in, unless it is there. What the default
-- partition caught meanwhile moves over.
CREATE FUNCTION events_make_month(instant timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first   timestamptz := date_trunc('month', instant AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    next    timestamptz := (date_trunc('month', instant AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    month   text := 'events_' || to_char(first AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    IF to_regclass(month) IS NOT NULL THEN
        RETURN;
    END IF;
    -- Nobody adds a row between the move and the attachment.
    LOCK TABLE events_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE events INCLUDING ALL)', month);
    EXECUTE format('WITH moved AS (DELETE FROM events_default WHERE at >= %L AND at < %L RETURNING *)
                    INSERT INTO %I SELECT * FROM moved', first, next, month);
    EXECUTE format('ALTER TABLE events ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', month, first, next);
END
$$;

-- Makes the partitions of this month and the next two, and of every month that the default partition
-- has caught rows of.
CREATE FUNCTION events_make_months() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    -- Read to its end before anything is attached: the default partition must not be in use then.
    wanted timestamptz[] := array(
        SELECT now() + months * interval '1 month' FROM generate_series(0, 2) AS months
        UNION ALL
        SELECT DISTINCT date_trunc('month', at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' FROM events_default);
    instant timestamptz;
BEGIN
    FOREACH instant IN ARRAY wanted LOOP
        PERFORM events_make_month(instant);
    END LOOP;
END
$$;

-- Drops the partitions of all months before the `keep` whole ones that precede the current month, and
-- answers their names.
CREATE FUNCTION events_drop_months_before(keep integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    oldest text := 'events_' || to_char((now() AT TIME ZONE 'UTC') - keep * interval '1 month', 'YYYY_MM');
    month  text;
BEGIN
    FOR month IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
        WHERE pg_inherits.inhparent = 'events'::regclass
          AND child.relname ~ '^events_\d{4}_\d{2}$' AND child.relname < oldest
        ORDER BY child.relname
    LOOP
        EXECUTE format('DROP TABLE %I', month);
        RETURN NEXT month;
    END LOOP;
END
$$;

SELECT events_make_months();
