-- Whether users can cancel their own subscriptions, and undo that. Off until the tenant turns it on.
ALTER TABLE tenants ADD COLUMN self_service boolean NOT NULL DEFAULT false;

-- What the last cancellation of a subscription replaced, so that its user can undo it. Subscriptions that were canceled
-- before this migration have none, and neither have those that were canceled with an end of the server's choice.
CREATE TABLE subscription_cancellations (
    tenant_id       uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    -- Before the cancellation.
    status          text        NOT NULL,
    ends_at         timestamptz,
    -- The end that the cancellation set. If the subscription has another one by now, this row does not count.
    cancelled_until timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id)
);
