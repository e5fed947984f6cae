-- A user who was erased: the row stays for what belongs to it, and says nothing of the person any more.
ALTER TABLE users ADD COLUMN erased_at timestamptz;
