-- no-transaction
-- A browser asks whether a page may call at all before it says for which client; so the page is looked up
-- among all clients.
DROP INDEX CONCURRENTLY IF EXISTS clients_allowed_origins;
CREATE INDEX CONCURRENTLY clients_allowed_origins ON clients USING gin (allowed_origins)
    WHERE kind = 'publishable' AND disabled_at IS NULL;
