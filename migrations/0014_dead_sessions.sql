-- no-transaction
-- Housekeeping finds sessions that were ended, and those that are too old to live, without reading the rest. Neither
-- column changes when a session is refreshed or used, so its row still stays where it is.
DROP INDEX CONCURRENTLY IF EXISTS sessions_ended;
CREATE INDEX CONCURRENTLY sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS sessions_by_age;
CREATE INDEX CONCURRENTLY sessions_by_age ON sessions (created_at);
