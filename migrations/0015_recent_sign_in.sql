-- How many seconds ago a user must have signed in at most to delete the account; 0 for any time.
ALTER TABLE tenants ADD COLUMN recent_sign_in integer NOT NULL DEFAULT 0 CHECK (recent_sign_in >= 0);
