-- The payment account whose provider reported the change. NULL for changes by API clients, commands and background tasks.
ALTER TABLE events ADD COLUMN payment_account_id uuid;

-- What an object waits for: 'subscription', 'plan' or 'user'. NULL if it does not wait. The object is fetched again when
-- a record with one of the ids appears, or for a user, when any user is created after waits_since.
ALTER TABLE payment_objects ADD COLUMN waits_for text;
ALTER TABLE payment_objects ADD COLUMN waits_for_ids text[];
ALTER TABLE payment_objects ADD COLUMN waits_since timestamptz;
