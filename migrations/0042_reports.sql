-- Reports: recurring revenue, churn, trials, cohorts and payments.

-- What reports need to know of each subscription: a row is its state from `at` on. The state at an instant is the row with
-- the highest seq of those whose `at` has passed. The sums below contain all of them. Never deleted.
CREATE TABLE revenue_changes (
    tenant_id       uuid        NOT NULL,
    user_id         uuid        NOT NULL,
    seq             bigint      NOT NULL,
    at              timestamptz NOT NULL,
    subscription_id uuid        NOT NULL,
    plan_id         uuid        NOT NULL,
    billing_cycle   text        NOT NULL,
    currency        text        NOT NULL,
    status          text        NOT NULL,
    basis           text        NOT NULL,
    suspended       boolean     NOT NULL,
    -- The subscription had started long before it was created.
    imported        boolean     NOT NULL,
    -- Price × quantity of a year, in minor units.
    arr_minor       numeric     NOT NULL,
    PRIMARY KEY (tenant_id, user_id, seq)
);

-- For the changes behind a figure.
CREATE INDEX revenue_changes_at ON revenue_changes (tenant_id, at, user_id);

-- Most states arrive with the event of their change, so that a request has no second row and index to write: user_id, plan_id,
-- billing_cycle, currency, status, basis, suspended, imported and arr_minor after the event, separated by spaces. `subject_id`
-- is the subscription.
ALTER TABLE events ADD COLUMN revenue_state text;

-- States that the sums do not contain yet, and that are not in an event: those of deletions, of due transitions, of changes
-- without an event or with several states, those that hold from another time than their event, and those that have not taken
-- effect. The roll-up moves them to revenue_changes. They are numbered together with the events.
CREATE TABLE pending_revenue_changes (
    tenant_id       uuid        NOT NULL,
    user_id         uuid        NOT NULL,
    seq             bigint      NOT NULL DEFAULT nextval('events_seq'),
    at              timestamptz NOT NULL,
    subscription_id uuid        NOT NULL,
    plan_id         uuid        NOT NULL,
    billing_cycle   text        NOT NULL,
    currency        text        NOT NULL,
    status          text        NOT NULL,
    basis           text        NOT NULL,
    suspended       boolean     NOT NULL,
    imported        boolean     NOT NULL,
    arr_minor       numeric     NOT NULL,
    PRIMARY KEY (at, seq)
);

-- Changes of payments that payments_daily does not contain yet.
CREATE TABLE payment_changes (
    tenant_id    uuid   NOT NULL,
    seq          bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    payment_id   uuid   NOT NULL,
    day          date   NOT NULL,
    currency     text   NOT NULL,
    kind         text   NOT NULL,
    payments     bigint NOT NULL,
    amount_minor bigint NOT NULL,
    PRIMARY KEY (tenant_id, seq)
);

-- Sums. Each row is the change in a span, a day or a month that starts with `day`, so a level is the sum of all spans up to
-- it. Each change is in the row of its day and in that of its month; reports read months where they can. All plans together
-- have the plan 00000000-0000-0000-0000-000000000000 and the billing cycle ''. A rebuild writes the next generation, and
-- reports read the tenant's current one.
CREATE TABLE revenue_movements (
    tenant_id     uuid    NOT NULL,
    generation    integer NOT NULL,
    span          text    NOT NULL,
    plan_id       uuid    NOT NULL,
    billing_cycle text    NOT NULL,
    day           date    NOT NULL,
    currency      text    NOT NULL,
    kind          text    NOT NULL,
    users         bigint  NOT NULL,
    changes       bigint  NOT NULL,
    subscriptions bigint  NOT NULL,
    arr_minor     numeric NOT NULL,
    PRIMARY KEY (tenant_id, generation, span, plan_id, billing_cycle, day, currency, kind)
) WITH (fillfactor = 80);

CREATE TABLE revenue_statuses (
    tenant_id     uuid    NOT NULL,
    generation    integer NOT NULL,
    span          text    NOT NULL,
    plan_id       uuid    NOT NULL,
    billing_cycle text    NOT NULL,
    day           date    NOT NULL,
    currency      text    NOT NULL,
    status        text    NOT NULL,
    basis         text    NOT NULL,
    suspended     boolean NOT NULL,
    subscriptions bigint  NOT NULL,
    arr_minor     numeric NOT NULL,
    PRIMARY KEY (tenant_id, generation, span, plan_id, billing_cycle, day, currency, status, basis, suspended)
) WITH (fillfactor = 80);

CREATE TABLE revenue_outcomes (
    tenant_id     uuid    NOT NULL,
    generation    integer NOT NULL,
    span          text    NOT NULL,
    plan_id       uuid    NOT NULL,
    billing_cycle text    NOT NULL,
    day           date    NOT NULL,
    currency      text    NOT NULL,
    started_month date    NOT NULL,
    kind          text    NOT NULL,
    subscriptions bigint  NOT NULL,
    arr_minor     numeric NOT NULL,
    PRIMARY KEY (tenant_id, generation, span, plan_id, billing_cycle, day, currency, started_month, kind)
) WITH (fillfactor = 80);

CREATE TABLE revenue_cohorts (
    tenant_id    uuid    NOT NULL,
    generation   integer NOT NULL,
    currency     text    NOT NULL,
    cohort_month date    NOT NULL,
    month        date    NOT NULL,
    joined       bigint  NOT NULL,
    users        bigint  NOT NULL,
    arr_minor    numeric NOT NULL,
    PRIMARY KEY (tenant_id, generation, currency, cohort_month, month)
) WITH (fillfactor = 80);

CREATE TABLE payments_daily (
    tenant_id    uuid    NOT NULL,
    generation   integer NOT NULL,
    currency     text    NOT NULL,
    day          date    NOT NULL,
    kind         text    NOT NULL,
    payments     bigint  NOT NULL,
    amount_minor numeric NOT NULL,
    PRIMARY KEY (tenant_id, generation, currency, day, kind)
) WITH (fillfactor = 80);

-- What is known of a tenant's reports. A tenant without a row has generation 0.
CREATE TABLE report_state (
    tenant_id              uuid    NOT NULL PRIMARY KEY,
    generation             integer NOT NULL DEFAULT 0,
    -- The generation that a rebuild writes, and the last user and payment that it contains.
    rebuild_generation     integer,
    rebuilt_users_to       uuid,
    rebuilt_payments_to    uuid,
    -- The last subscription whose history was read from events, and when all were.
    backfilled_to          uuid,
    backfilled_at          timestamptz,
    -- Earlier days are unknown, because their events were removed.
    known_since            date
);

-- Subscriptions that were created before this have no rows in revenue_changes until their history is read from events.
CREATE TABLE report_installation (
    is_only_row       boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (is_only_row),
    installed_at      timestamptz NOT NULL DEFAULT now(),
    -- The roll-up has read the states in the events of the transactions that are visible in this snapshot, and no others.
    snapshot          pg_snapshot NOT NULL DEFAULT pg_current_snapshot(),
    -- It has also read those of the events up to this value of `seq`, which may be from another cluster.
    copied_to_seq     bigint      NOT NULL DEFAULT 0,
    -- The cluster of the snapshot. In a copy of the database in another cluster, the snapshot means nothing.
    system_identifier bigint      NOT NULL
);
INSERT INTO report_installation (system_identifier) SELECT system_identifier FROM pg_control_system();

-- Numbers events and states after all that the tables have: a logical replica has the rows, but not the value of the sequence.
-- Runs with the privileges of its owner, with a fixed search path.
CREATE FUNCTION events_advance_sequence() RETURNS void LANGUAGE sql AS $$
    SELECT setval('events_seq', greatest(last_value, (SELECT max(seq) FROM events), (SELECT max(seq) FROM pending_revenue_changes),
        (SELECT max(seq) FROM revenue_changes), 1)) FROM events_seq
$$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION events_advance_sequence() SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END
$$;
REVOKE ALL ON FUNCTION events_advance_sequence() FROM PUBLIC;

-- All states that the sums do not contain: also those in events that the roll-up has not read.
CREATE VIEW all_pending_revenue_changes AS
SELECT tenant_id, user_id, seq, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended, imported,
    arr_minor
FROM pending_revenue_changes
UNION ALL
SELECT tenant_id, state[1]::uuid, seq, at, subject_id, state[2]::uuid, state[3], state[4], state[5], state[6],
    state[7]::boolean, state[8]::boolean, state[9]::numeric
FROM report_installation
CROSS JOIN LATERAL (
    SELECT tenant_id, seq, at, subject_id, revenue_state FROM events
    WHERE seq > copied_to_seq AND xact >= pg_snapshot_xmax(snapshot) AND xact < pg_snapshot_xmax(pg_current_snapshot())
    UNION ALL
    SELECT tenant_id, seq, at, subject_id, revenue_state FROM events
    WHERE seq > copied_to_seq AND xact = ANY (ARRAY(SELECT pg_snapshot_xip(snapshot)))
) AS event
CROSS JOIN LATERAL string_to_array(revenue_state, ' ') AS state
WHERE revenue_state IS NOT NULL;
