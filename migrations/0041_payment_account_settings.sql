-- Whether a customer without a user gets one. Otherwise the subscription waits for a user.
ALTER TABLE payment_accounts ADD COLUMN creates_users boolean NOT NULL DEFAULT true;

-- When a subscription is to be cancelled, if not at the end of the period.
ALTER TABLE payment_commands ADD COLUMN ends_at timestamptz;
