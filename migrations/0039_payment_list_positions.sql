-- How far a list of a payment provider's objects was read, so that a process that was killed is continued by the next one.
-- No row if the last list was read to its end.
CREATE TABLE payment_list_positions (
    tenant_id  uuid        NOT NULL,
    account_id uuid        NOT NULL,
    -- 'import' or 'reconcile'.
    purpose    text        NOT NULL,
    -- The list, its cursor, and what was counted so far.
    position   jsonb       NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, purpose)
);
