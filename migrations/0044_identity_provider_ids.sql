-- The API names a provider by its id. A guarded provider has a URL that an API client has set: the service connects to public
-- addresses only. The table is small, so the id needs no index of its own.
ALTER TABLE identity_providers
    -- squawk-ignore adding-field-with-default
    ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN is_guarded boolean NOT NULL DEFAULT false;
