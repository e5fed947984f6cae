-- no-transaction
-- Finds the entries of a record, the newest first, and with it the entry of an event.

DROP INDEX CONCURRENTLY IF EXISTS event_log_subject;
CREATE INDEX CONCURRENTLY event_log_subject ON event_log (tenant_id, subject_id, position);
