-- Lets a role that cannot change the schema maintain the partitions of the event log: these two functions run with the
-- privileges of their owner. `perennial migrate --grant-to` lets a role call them.

-- Refuses to drop more than the setting of the service allows.
CREATE OR REPLACE FUNCTION events_drop_months_before(keep integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    oldest text := 'events_' || to_char((now() AT TIME ZONE 'UTC') - keep * interval '1 month', 'YYYY_MM');
    month  text;
BEGIN
    IF keep IS NULL OR keep < 1 THEN
        RAISE EXCEPTION 'keep must be at least 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
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

-- A fixed search path, with temporary tables last, so that a caller cannot substitute a table or function of its own.
DO $$
DECLARE
    signature text;
BEGIN
    FOREACH signature IN ARRAY ARRAY['events_make_months()', 'events_drop_months_before(integer)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', signature, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    END LOOP;
END
$$;
