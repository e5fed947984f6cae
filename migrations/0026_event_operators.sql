-- The operating system's user and host that ran the command that made the change. NULL for changes by API clients and
-- background tasks, and in events of earlier versions.
ALTER TABLE events ADD COLUMN operator text;
