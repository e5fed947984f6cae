-- The payment account whose provider reported the change. NULL for changes by API clients, commands and background tasks.
ALTER TABLE events ADD COLUMN payment_account_id uuid;
