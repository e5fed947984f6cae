-- no-transaction
-- Housekeeping finds what has expired without reading the rest.

DROP INDEX CONCURRENTLY IF EXISTS client_values_expiry;

CREATE INDEX CONCURRENTLY client_values_expiry ON client_values (expires_at)
    WHERE expires_at IS NOT NULL;
