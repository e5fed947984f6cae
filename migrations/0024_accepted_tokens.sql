-- Which tokens of a provider are accepted, beyond access tokens for one of its audiences. New providers accept none of
-- these unless the operator says so. Existing ones keep what they accepted, so that the upgrade locks out no users.
ALTER TABLE identity_providers ADD COLUMN accept_id_tokens boolean NOT NULL DEFAULT false;
-- Tokens bound to a key or certificate (`cnf`), whose binding is not checked.
ALTER TABLE identity_providers ADD COLUMN accept_bound_tokens boolean NOT NULL DEFAULT false;
-- The claim `azp`, or `client_id` of an introspection, counts as an audience.
ALTER TABLE identity_providers ADD COLUMN accept_azp boolean NOT NULL DEFAULT false;
UPDATE identity_providers SET accept_id_tokens = true, accept_bound_tokens = true, accept_azp = true;

-- When the identity provider authenticated the user; NULL if it does not say, and in sessions of earlier versions.
ALTER TABLE sessions ADD COLUMN authenticated_at timestamptz;
