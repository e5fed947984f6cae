-- Rotation of the master key. While the check value of the previous key is set, `perennial keys rewrap` has not finished,
-- and some values in this database still need that key.
ALTER TABLE instance ADD COLUMN previous_master_key_check bytea;
-- Whether sealed secrets and refresh tokens are written with a key id. Instances of earlier versions cannot read those, so
-- a database from before this migration gets them with the first `perennial keys rewrap`.
ALTER TABLE instance ADD COLUMN has_key_ids boolean NOT NULL DEFAULT false;

-- The master key that the session's refresh tokens are derived from; NULL if they have no key id.
ALTER TABLE sessions ADD COLUMN refresh_key_id integer;
-- SHA-256 of the refresh tokens that devices may still have from a master key that was replaced. Their salt is no longer
-- stored, so the replaced key cannot compute them from this database.
ALTER TABLE sessions ADD COLUMN carried_tokens bytea[];
