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

-- States that the sums do not contain yet, written in the transaction of the change. The roll-up moves them to
-- revenue_changes. So requests write to one index, which only grows at its end.
CREATE TABLE pending_revenue_changes (
    tenant_id       uuid        NOT NULL,
    user_id         uuid        NOT NULL,
    seq             bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
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
    installed_at timestamptz NOT NULL
);
INSERT INTO report_installation VALUES (now());
