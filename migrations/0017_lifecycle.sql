-- Who moves time for a tenant's subscriptions; since when, and how many days late a payment may be.
ALTER TABLE tenants
    ADD COLUMN lifecycle          text        NOT NULL DEFAULT 'recorded' CHECK (lifecycle IN ('recorded', 'managed')),
    ADD COLUMN lifecycle_since    timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN unpaid_after_days  integer     NOT NULL DEFAULT 7 CHECK (unpaid_after_days >= 0),
    ADD COLUMN expired_after_days integer     NOT NULL DEFAULT 30 CHECK (expired_after_days BETWEEN unpaid_after_days AND 3650);

-- By how many microseconds a sandbox's billing time is ahead of the real one.
ALTER TABLE instance ADD COLUMN clock_ahead bigint NOT NULL DEFAULT 0;
