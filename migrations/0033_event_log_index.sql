-- no-transaction
-- Builds the index that finds events without a position, on one partition after the other. Each row that a SELECT returns
-- is a statement, which is run as well.

-- What an interrupted build has left.
SELECT format('DROP INDEX CONCURRENTLY %I', index.relname)
FROM pg_class AS index
JOIN pg_index ON indexrelid = index.oid AND NOT indisvalid
JOIN pg_inherits ON inhrelid = indrelid AND inhparent = 'events'::regclass
WHERE index.relname LIKE 'events\_%\_xact';

SELECT format('CREATE INDEX CONCURRENTLY %I ON %I (xact) WHERE xact IS NOT NULL', child.relname || '_xact', child.relname)
FROM pg_inherits
JOIN pg_class AS child ON child.oid = inhrelid
WHERE inhparent = 'events'::regclass AND NOT EXISTS (
    SELECT FROM pg_index JOIN pg_class AS index ON index.oid = indexrelid
    LEFT JOIN pg_inherits AS attached ON attached.inhrelid = indexrelid AND attached.inhparent = 'events_xact'::regclass
    WHERE indrelid = child.oid AND (attached.inhrelid IS NOT NULL OR index.relname = child.relname || '_xact')
);

-- Attaching waits for the writers of a partition, and new ones wait behind it: for a second at most, before it is retried.
SET lock_timeout = '1s';

SELECT format('ALTER INDEX events_xact ATTACH PARTITION %I', index.relname)
FROM pg_class AS index
JOIN pg_index ON indexrelid = index.oid
JOIN pg_inherits ON inhrelid = indrelid AND inhparent = 'events'::regclass
WHERE index.relname = (SELECT relname FROM pg_class WHERE oid = indrelid) || '_xact'
  AND NOT EXISTS (SELECT FROM pg_inherits AS attached WHERE attached.inhrelid = indexrelid);

RESET lock_timeout;
