-- no-transaction
-- A kept answer about a user holds the e-mail address; erasing the user finds it.
DROP INDEX CONCURRENTLY IF EXISTS idempotency_keys_of_users;
CREATE INDEX CONCURRENTLY idempotency_keys_of_users ON idempotency_keys (tenant_id, location)
    WHERE location LIKE '/users/%';
