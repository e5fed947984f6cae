-- The event log in commit order. A sequencer gives each event a position in the log of its tenant after the event's
-- transaction is committed. Positions of a tenant are consecutive and start at 1.

CREATE SEQUENCE events_seq;

-- The transaction that recorded the event, and its place in the order of insertion. NULL in events of earlier versions.
-- The defaults are set afterwards, so that no row is rewritten.
ALTER TABLE events ADD COLUMN xact xid8, ADD COLUMN seq bigint;
ALTER TABLE events ALTER COLUMN xact SET DEFAULT pg_current_xact_id(), ALTER COLUMN seq SET DEFAULT nextval('events_seq');

-- Built for each partition by the next migration.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX events_xact ON ONLY events (xact) WHERE xact IS NOT NULL;

-- Instances of the previous version insert events until the migrations have finished and privileges are renewed.
DO $$
DECLARE
    writer regrole;
BEGIN
    FOR writer IN
        SELECT DISTINCT grantee::regrole FROM pg_class, aclexplode(relacl)
        WHERE pg_class.oid = 'events'::regclass AND privilege_type = 'INSERT' AND grantee <> 0
    LOOP
        EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE events_seq TO %s', writer);
    END LOOP;
END
$$;

CREATE TABLE event_log (
    tenant_id   uuid        NOT NULL,
    position    bigint      NOT NULL,
    -- When the event received its position; for events of earlier versions, when it happened.
    recorded_at timestamptz NOT NULL,
    -- The key of the event in `events`, and what readers filter by.
    at          timestamptz NOT NULL,
    event_id    uuid        NOT NULL,
    kind        text        NOT NULL,
    subject_id  uuid        NOT NULL,
    PRIMARY KEY (tenant_id, position)
);

-- Updated with each batch of events; the free space keeps the new row versions on their page.
CREATE TABLE event_log_tenants (
    tenant_id     uuid   NOT NULL PRIMARY KEY,
    last_position bigint NOT NULL,
    -- Entries up to this position were removed by retention.
    removed_to    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

-- The last day on which an event of a month received a position. Retention drops a month when all its entries are removed.
CREATE TABLE event_log_months (
    month            date NOT NULL PRIMARY KEY,
    last_recorded_on date NOT NULL
);

-- The state of the sequencer. Locked by each transaction that assigns positions.
CREATE TABLE event_log_state (
    is_only_row        boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (is_only_row),
    -- Identifies the history of positions. Changes when a position may have been assigned twice, to different events.
    epoch              uuid        NOT NULL DEFAULT gen_random_uuid(),
    -- Events of the transactions that are visible in this snapshot have positions, and no others.
    snapshot           pg_snapshot NOT NULL,
    -- The value of `events_seq` when the snapshot was stored.
    last_seq           bigint      NOT NULL DEFAULT 0,
    -- Events up to this value of `seq` have positions. They may be from another cluster, with unrelated transaction ids.
    copied_to_seq      bigint      NOT NULL DEFAULT 0,
    -- While a large number of events is numbered in pages: the snapshot of the last page, and where the next page starts.
    target_snapshot    pg_snapshot,
    paged_to_seq       bigint,
    -- When the sequencer last had numbered all visible events.
    caught_up_at       timestamptz NOT NULL DEFAULT now(),
    -- Whether the events of earlier versions have positions, and the key of the last one that was checked.
    is_backfilled      boolean     NOT NULL DEFAULT false,
    backfill_tenant_id uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    backfill_at        timestamptz NOT NULL DEFAULT '0001-01-01 00:00:00+00',
    backfill_id        uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    -- The cluster, its timeline, the database and this table. A copy of the database differs in one of them.
    system_identifier  bigint      NOT NULL,
    timeline           bigint      NOT NULL,
    database_oid       bigint      NOT NULL,
    table_oid          bigint      NOT NULL
);

-- The name of a segment of the write-ahead log starts with the timeline. The control file has the one of the last checkpoint.
CREATE FUNCTION event_log_history(
    OUT system_identifier bigint, OUT timeline bigint, OUT database_oid bigint, OUT table_oid bigint
) STABLE LANGUAGE sql AS $$
    SELECT (SELECT cluster.system_identifier FROM pg_control_system() AS cluster),
        ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
        (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
        'event_log_state'::regclass::oid::bigint
$$;

INSERT INTO event_log_state (snapshot, system_identifier, timeline, database_oid, table_oid)
SELECT pg_current_snapshot(), system_identifier, timeline, database_oid, table_oid FROM event_log_history();

-- Waits until no transaction that has recorded an event is open, and prevents new ones until the end of the transaction.
CREATE FUNCTION events_lock() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE;
END
$$;

-- Returns the first instant of the oldest month to keep.
CREATE FUNCTION events_kept_from(keep integer) RETURNS timestamptz STABLE LANGUAGE sql AS $$
    SELECT (date_trunc('month', now() AT TIME ZONE 'UTC') - keep * interval '1 month') AT TIME ZONE 'UTC'
$$;

-- Drops the partitions of all months before the `keep` whole ones that precede the current month, and returns their names.
-- Keeps a month while one of its events has no position, or a position that is not removed yet. Drops none before the
-- entries of the log that are older than the months to keep are removed.
CREATE OR REPLACE FUNCTION events_drop_months_before(keep integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    kept_from  timestamptz := events_kept_from(keep);
    oldest     text := 'events_' || to_char(kept_from AT TIME ZONE 'UTC', 'YYYY_MM');
    state      event_log_state%ROWTYPE;
    partition  text;
    unnumbered boolean;
BEGIN
    IF keep IS NULL OR keep < 1 THEN
        RAISE EXCEPTION 'keep must be at least 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT * INTO STRICT state FROM event_log_state;
    IF NOT state.is_backfilled OR EXISTS (
        SELECT FROM event_log_tenants AS head
        JOIN event_log ON event_log.tenant_id = head.tenant_id AND position = removed_to + 1
        WHERE recorded_at < kept_from
    ) THEN
        RETURN;
    END IF;
    FOR partition IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
        WHERE pg_inherits.inhparent = 'events'::regclass
          AND child.relname ~ '^events_\d{4}_\d{2}$' AND child.relname < oldest
          AND NOT EXISTS (
            SELECT FROM event_log_months AS recorded
            WHERE to_char(recorded.month, '"events_"YYYY_MM') = child.relname
              AND last_recorded_on >= (kept_from AT TIME ZONE 'UTC')::date)
        ORDER BY child.relname
    LOOP
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', partition);
        -- An event that was recorded since then stays, with its month.
        SELECT * INTO STRICT state FROM event_log_state;
        EXECUTE format(
            'SELECT EXISTS (
                SELECT FROM %1$I WHERE seq > $2
                  AND xact >= pg_snapshot_xmax($1) AND xact < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY xact OFFSET 0)
             OR EXISTS (
                SELECT FROM %1$I WHERE seq > $2 AND xact = ANY (ARRAY(SELECT pg_snapshot_xip($1))) ORDER BY xact OFFSET 0)
             OR EXISTS (
                SELECT FROM event_log_months AS recorded
                WHERE to_char(recorded.month, ''"events_"YYYY_MM'') = %1$L
                  AND last_recorded_on >= $3)', partition)
        INTO unnumbered
        USING state.snapshot, state.copied_to_seq, (kept_from AT TIME ZONE 'UTC')::date;
        CONTINUE WHEN unnumbered;
        EXECUTE format('DROP TABLE %I', partition);
        DELETE FROM event_log_months AS recorded WHERE to_char(recorded.month, '"events_"YYYY_MM') = partition;
        RETURN NEXT partition;
    END LOOP;
END
$$;

-- Run with the privileges of their owner. A fixed search path, with temporary tables last, so that a caller cannot
-- substitute a table or function of its own.
DO $$
DECLARE
    signature text;
BEGIN
    FOREACH signature IN ARRAY ARRAY['events_lock()', 'events_drop_months_before(integer)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', signature, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    END LOOP;
END
$$;
