-- The schema of a cell. All cells have the same one. The tables of the directory are used in the home cell only.
--
-- Keys start with tenant_id, except in tables of the installation and in lookups that find the tenant. Deleted plans,
-- subscriptions and payments stay as rows, for the history; so do erased users.


-- Partitions ------------------------------------------------------------------------------------------------------------
--
-- Three tables have a partition per month or per day, so that old rows are dropped at once, and a default partition, so
-- that a late worker never makes an insert fail. Partitions start at midnight UTC.

CREATE FUNCTION partition_unit(parent text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT CASE parent
        WHEN 'events' THEN 'month'
        WHEN 'payment_notifications' THEN 'month'
        WHEN 'webhook_attempts' THEN 'day'
    END
$$;

CREATE FUNCTION partition_name(parent text, instant timestamptz) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT parent || to_char(instant AT TIME ZONE 'UTC',
        CASE partition_unit(parent) WHEN 'day' THEN '_YYYY_MM_DD' ELSE '_YYYY_MM' END)
$$;

-- Returns the start of the oldest partition to keep: the one that contains the instant `keep` ago.
CREATE FUNCTION partitions_kept_from(parent text, keep interval) RETURNS timestamptz STABLE LANGUAGE sql AS $$
    SELECT date_trunc(partition_unit(parent), (now() AT TIME ZONE 'UTC') - keep) AT TIME ZONE 'UTC'
$$;

-- Returns the column that a table is partitioned by.
CREATE FUNCTION partition_column(parent text) RETURNS name STABLE LANGUAGE sql AS $$
    SELECT attname FROM pg_partitioned_table
    JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
    WHERE partrelid = parent::regclass
$$;

-- Creates the partition that contains `instant`, unless it exists. Rows of the default partition that belong there move.
CREATE FUNCTION create_partition(parent text, instant timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    unit      text := partition_unit(parent);
    partition text := partition_name(parent, instant);
    start     timestamp := date_trunc(unit, instant AT TIME ZONE 'UTC');
    starts_at timestamptz := start AT TIME ZONE 'UTC';
    ends_at   timestamptz := (start + ('1 ' || unit)::interval) AT TIME ZONE 'UTC';
BEGIN
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    -- No row is inserted between the move and the attachment.
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent || '_default');
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', partition, parent);
    EXECUTE format(
        'WITH moved AS (DELETE FROM %1$I WHERE %2$I >= %3$L AND %2$I < %4$L RETURNING *)
         INSERT INTO %5$I SELECT * FROM moved',
        parent || '_default', partition_column(parent), starts_at, ends_at, partition);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, partition, starts_at, ends_at);
END
$$;

-- Creates the present partition, the next two, and each one that rows in the default partition belong to.
CREATE FUNCTION create_partitions(parent text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    unit    text := partition_unit(parent);
    wanted  timestamptz[];
    instant timestamptz;
BEGIN
    IF unit IS NULL THEN
        RAISE EXCEPTION '% has no partitions of time', parent USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Read completely before the first partition is attached: the default partition must not be in use then.
    EXECUTE format(
        'SELECT array(
            SELECT (date_trunc(%1$L, now() AT TIME ZONE ''UTC'') + number * %2$L::interval) AT TIME ZONE ''UTC''
            FROM generate_series(0, 2) AS number
            UNION
            SELECT date_trunc(%1$L, %3$I AT TIME ZONE ''UTC'') AT TIME ZONE ''UTC'' FROM %4$I)',
        unit, '1 ' || unit, partition_column(parent), parent || '_default')
    INTO STRICT wanted;
    FOREACH instant IN ARRAY wanted LOOP
        PERFORM create_partition(parent, instant);
    END LOOP;
END
$$;

-- Drops the partitions before the one that contains the instant `keep` ago, and returns their names. A month of events
-- stays as long as readers of the log need it.
CREATE FUNCTION drop_partitions(parent text, keep interval) RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    unit      text := partition_unit(parent);
    kept_from timestamptz := partitions_kept_from(parent, keep);
    partition text;
BEGIN
    IF unit IS NULL OR keep IS NULL OR keep < ('1 ' || unit)::interval THEN
        RAISE EXCEPTION 'keep must be at least one %', unit USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR partition IN
        SELECT child.relname
        FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = parent::regclass AND child.relname <> parent || '_default'
          AND child.relname < partition_name(parent, kept_from)
        ORDER BY child.relname
    LOOP
        IF parent = 'events' THEN
            CONTINUE WHEN NOT events_release_month(partition, kept_from);
        END IF;
        EXECUTE format('DROP TABLE %I', partition);
        RETURN NEXT partition;
    END LOOP;
END
$$;


-- The installation, its tenants and their clients -----------------------------------------------------------------------

CREATE TABLE instance (
    only_one                  boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (only_one),
    mode                      text        NOT NULL CHECK (mode IN ('live', 'sandbox')),
    -- Identifies the master key in use without revealing it.
    master_key_check          bytea,
    -- The check value of the replaced master key, until `perennial keys rewrap` has finished.
    previous_master_key_check bytea,
    -- How many microseconds the billing time of a sandbox is ahead of real time.
    clock_ahead               bigint      NOT NULL DEFAULT 0,
    created_at                timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tenants (
    tenant_id                uuid        NOT NULL PRIMARY KEY,
    name                     text        NOT NULL,
    cell                     text        NOT NULL,
    default_currency         text        NOT NULL CHECK (default_currency ~ '^[A-Z]{3}$'),
    lifecycle                text        NOT NULL DEFAULT 'recorded' CHECK (lifecycle IN ('recorded', 'managed')),
    lifecycle_since          timestamptz NOT NULL DEFAULT now(),
    -- Dunning: days after the due date.
    unpaid_after_days        integer     NOT NULL DEFAULT 7 CHECK (unpaid_after_days >= 0),
    expired_after_days       integer     NOT NULL DEFAULT 30
        CONSTRAINT tenants_dunning CHECK (expired_after_days BETWEEN unpaid_after_days AND 3650),
    -- Seconds. At most a year; at least twice the lifetime of an access token, because clients refresh that often.
    session_idle_timeout     integer     NOT NULL DEFAULT 1209600 CHECK (session_idle_timeout BETWEEN 1800 AND 31536000),
    session_absolute_timeout integer     NOT NULL DEFAULT 2592000 CHECK (session_absolute_timeout BETWEEN 1800 AND 31536000),
    -- How many seconds ago a user must have signed in at most to delete the account; 0 for any time.
    recent_sign_in           integer     NOT NULL DEFAULT 0 CHECK (recent_sign_in >= 0),
    -- Whether users can cancel their own subscriptions, and undo that.
    self_service             boolean     NOT NULL DEFAULT false,
    created_at               timestamptz NOT NULL,
    CONSTRAINT tenants_name UNIQUE (name)
);

CREATE TABLE clients (
    tenant_id       uuid        NOT NULL REFERENCES tenants,
    id              uuid        NOT NULL,
    kind            text        NOT NULL CHECK (kind IN ('secret', 'publishable')),
    name            text        NOT NULL,
    scopes          text[]      NOT NULL,
    allow_addresses text[]      NOT NULL,
    allowed_origins text[]      NOT NULL,
    created_at      timestamptz NOT NULL,
    disabled_at     timestamptz,
    PRIMARY KEY (tenant_id, id)
);

-- A preflight request names no client, so its origin is looked up among all of them.
CREATE INDEX clients_allowed_origins ON clients USING gin (allowed_origins)
    WHERE kind = 'publishable' AND disabled_at IS NULL;

-- The values of the header client-id, as SHA-256. A client has two during a rotation.
CREATE TABLE client_values (
    tenant_id  uuid        NOT NULL,
    client_id  uuid        NOT NULL,
    value_hash bytea       NOT NULL CHECK (length(value_hash) = 32),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, client_id, value_hash),
    FOREIGN KEY (tenant_id, client_id) REFERENCES clients (tenant_id, id),
    -- The lookup that finds the tenant.
    CONSTRAINT client_values_hash UNIQUE (value_hash)
);

CREATE INDEX client_values_expiry ON client_values (expires_at) WHERE expires_at IS NOT NULL;

-- The identity providers whose tokens a tenant accepts.
CREATE TABLE identity_providers (
    tenant_id           uuid        NOT NULL REFERENCES tenants,
    id                  uuid        NOT NULL,
    -- Compared character by character with the claim `iss`.
    issuer              text        NOT NULL,
    -- A token must be for one of these. Only userinfo cannot tell the audience.
    audiences           text[]      NOT NULL CHECK (verify = 'userinfo' OR cardinality(audiences) > 0),
    verify              text        NOT NULL CHECK (verify IN ('jwt', 'introspection', 'tokeninfo', 'userinfo')),
    -- Where tokens are checked, if the discovery document does not say.
    endpoint            text,
    -- The service's own credentials at an introspection endpoint. The secret is encrypted with a key derived from the
    -- master key.
    client_id           text,
    client_secret       bytea,
    accept_id_tokens    boolean     NOT NULL,
    -- Tokens that are bound to a key or certificate (`cnf`). The binding is not checked.
    accept_bound_tokens boolean     NOT NULL,
    -- The claim `azp`, or `client_id` of an introspection, counts as an audience.
    accept_azp          boolean     NOT NULL,
    -- An API client has set a URL of the provider: the service connects to public addresses only.
    is_guarded          boolean     NOT NULL,
    created_at          timestamptz NOT NULL,
    CONSTRAINT identity_providers_issuer PRIMARY KEY (tenant_id, issuer)
);

-- An opaque token does not name its issuer, and must not be sent to one provider after the other.
CREATE UNIQUE INDEX identity_providers_opaque ON identity_providers (tenant_id) WHERE verify <> 'jwt';

-- The keys that sign access tokens of all tenants. Private keys are encrypted with a key derived from the master key.
CREATE TABLE signing_keys (
    id             uuid        NOT NULL PRIMARY KEY,
    algorithm      text        NOT NULL CHECK (algorithm IN ('EdDSA', 'ES256')),
    public_key     bytea       NOT NULL,
    private_key    bytea       NOT NULL,
    created_at     timestamptz NOT NULL,
    -- The key is published earlier, so that verifiers know it.
    signs_from     timestamptz NOT NULL,
    -- When the last token that it signed expires. NULL while it may sign.
    accepted_until timestamptz
);


-- Staff members, who work with the console ------------------------------------------------------------------------------

CREATE TABLE staff_members (
    id                uuid        NOT NULL PRIMARY KEY,
    -- NULL for a member of all tenants.
    tenant_id         uuid        REFERENCES tenants,
    -- As it was entered, and normalized. NULL for the member that links without an email address sign in.
    email             text,
    email_key         text        COLLATE "C",
    role              text        NOT NULL CHECK (role IN ('viewer', 'support', 'finance', 'admin')),
    -- Whether the person is a member because of a group of the identity provider, and was not invited.
    is_by_group       boolean     NOT NULL,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    last_signed_in_at timestamptz,
    -- Kept for the names in the event log.
    removed_at        timestamptz
);

CREATE UNIQUE INDEX staff_members_email ON staff_members (tenant_id, email_key) NULLS NOT DISTINCT
    WHERE removed_at IS NULL AND email_key IS NOT NULL;
CREATE UNIQUE INDEX staff_members_without_email ON staff_members (tenant_id, role) NULLS NOT DISTINCT
    WHERE removed_at IS NULL AND email_key IS NULL;

-- One-time sign-in links, by the SHA-256 of their secret. Deleted when they are used.
CREATE TABLE staff_links (
    token_hash bytea       NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    staff_id   uuid        NOT NULL REFERENCES staff_members ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);

-- Sessions of staff members, by the SHA-256 of the cookie.
CREATE TABLE staff_sessions (
    token_hash   bytea       NOT NULL PRIMARY KEY CHECK (length(token_hash) = 32),
    staff_id     uuid        NOT NULL REFERENCES staff_members ON DELETE CASCADE,
    -- The tenant whose data the member works with.
    tenant_id    uuid        NOT NULL REFERENCES tenants ON DELETE CASCADE,
    created_at   timestamptz NOT NULL,
    -- Written at most once a minute.
    last_used_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);


-- Requests and background tasks -----------------------------------------------------------------------------------------

-- The responses to creating requests with an Idempotency-Key. Stored in the transaction of their effect.
CREATE TABLE idempotency_keys (
    tenant_id   uuid        NOT NULL,
    -- SHA-256 of client, user, method, path and the key.
    scope_hash  bytea       NOT NULL CHECK (length(scope_hash) = 32),
    -- SHA-256 of the body.
    fingerprint bytea       NOT NULL CHECK (length(fingerprint) = 32),
    location    text        NOT NULL,
    body        text        NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, scope_hash)
);

CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);
-- A response about a user has the email address. Erasing the user deletes it.
CREATE INDEX idempotency_keys_of_users ON idempotency_keys (tenant_id, location) WHERE location LIKE '/users/%';

-- Tasks that one process runs at a time. Another one takes over when the lease of a killed process has expired.
CREATE TABLE task_leases (
    task        text        NOT NULL PRIMARY KEY,
    next_run_at timestamptz NOT NULL DEFAULT now(),
    held_by     uuid,
    held_until  timestamptz,
    failures    integer     NOT NULL DEFAULT 0
);


-- Users and their sessions ----------------------------------------------------------------------------------------------

CREATE TABLE users (
    tenant_id   uuid        NOT NULL,
    id          uuid        NOT NULL,
    -- The client's own id of the user.
    external_id text        COLLATE "C",
    -- As it was entered, and normalized. Empty if there is none.
    email       text        NOT NULL,
    email_key   text        NOT NULL COLLATE "C",
    metadata    jsonb       NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    -- The row of an erased user has no personal data. Records refer to it.
    erased_at   timestamptz,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT users_email UNIQUE (tenant_id, email_key)
);

CREATE UNIQUE INDEX users_external_id ON users (tenant_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX users_by_age ON users (tenant_id, created_at, id) WHERE erased_at IS NULL;

-- How identity providers name a user. A user that was created by a client has none until the first sign-up.
CREATE TABLE identities (
    tenant_id  uuid        NOT NULL,
    issuer     text        NOT NULL COLLATE "C",
    subject    text        NOT NULL COLLATE "C",
    user_id    uuid        NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT identities_subject PRIMARY KEY (tenant_id, issuer, subject),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
);

CREATE INDEX identities_user ON identities (tenant_id, user_id);

-- Numbers sessions and watermarks. A clock would leave the order of a sign-in and a watermark in doubt.
CREATE SEQUENCE session_numbers;

-- One row per sign-in. Contains nothing that can be used as a token: refresh tokens are computed from the salt and a key
-- that is not stored. Columns that a refresh or a use changes are in no index, and the page has free space, so that the row
-- stays on its page.
CREATE TABLE sessions (
    tenant_id            uuid        NOT NULL,
    id                   uuid        NOT NULL,
    number               bigint      NOT NULL,
    user_id              uuid        NOT NULL,
    -- The client that started the session. Clients are in the home cell.
    client_id            uuid        NOT NULL,
    issuer               text        NOT NULL,
    address              inet        NOT NULL,
    user_agent           text,
    -- When the identity provider authenticated the user. NULL if it does not say.
    authenticated_at     timestamptz,
    salt                 bytea       NOT NULL CHECK (length(salt) = 16),
    -- The master key that the refresh tokens are derived from.
    refresh_key_id       integer     NOT NULL,
    -- SHA-256 of the refresh tokens that devices may still have from a replaced master key. Their salt is no longer stored,
    -- so the replaced key cannot compute them from this database.
    carried_tokens       bytea[],
    generation           integer     NOT NULL CHECK (generation >= 0),
    confirmed_generation integer     NOT NULL CHECK (confirmed_generation BETWEEN 0 AND generation),
    refreshed_at         timestamptz NOT NULL,
    created_at           timestamptz NOT NULL,
    last_used_at         timestamptz NOT NULL,
    expires_at           timestamptz NOT NULL,
    ended_at             timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id)
) WITH (fillfactor = 80);

CREATE INDEX sessions_of_user ON sessions (tenant_id, user_id, created_at, id);
-- Housekeeping.
CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_by_age ON sessions (created_at);

-- Ends many sessions with one row: a session is rejected if its number is less than that of a watermark of its user, issuer,
-- tenant or installation.
CREATE TABLE session_watermarks (
    -- The nil UUID for the watermark of the installation, which has one in every cell.
    tenant_id           uuid        NOT NULL,
    -- 'installation', 'tenant', 'issuer:' and the issuer, or 'user:' and the user's id.
    scope               text        NOT NULL COLLATE "C",
    -- The number of the first session that the watermark does not end.
    sessions_valid_from bigint      NOT NULL,
    -- A session of the user that the watermark does not end.
    except_session      uuid,
    reason              text        NOT NULL,
    -- The operator who ran the command that set it.
    operator            text,
    set_at              timestamptz NOT NULL,
    -- Housekeeping: the last session that was checked, how many were ended, and when all were checked.
    cleaned_up_to       uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    ended               bigint      NOT NULL DEFAULT 0,
    cleaned_at          timestamptz,
    PRIMARY KEY (tenant_id, scope)
);

CREATE INDEX session_watermarks_cleaned ON session_watermarks (cleaned_at);


-- Plans -----------------------------------------------------------------------------------------------------------------

CREATE TABLE subscription_plans (
    tenant_id     uuid             NOT NULL,
    id            uuid             NOT NULL,
    slug          text COLLATE "C" NOT NULL,
    name          text             NOT NULL,
    product_id    text,
    variants      text[]           NOT NULL,
    price_minor   bigint           NOT NULL CHECK (price_minor BETWEEN 0 AND 1000000000000),
    currency      text             NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    href          text,
    billing_cycle text             NOT NULL CHECK (billing_cycle IN
        ('daily', 'weekly', 'monthly', 'quarterly', 'semiannual', 'yearly', 'lifetime')),
    trial_days    integer          NOT NULL DEFAULT 0 CHECK (trial_days BETWEEN 0 AND 730),
    description   text,
    node_quota    integer          NOT NULL CHECK (node_quota >= -1),
    features      text,
    most_popular  boolean          NOT NULL,
    tier          integer          NOT NULL CHECK (tier BETWEEN 0 AND 1000),
    is_active     boolean          NOT NULL,
    metadata      jsonb            NOT NULL DEFAULT '{}',
    created_at    timestamptz      NOT NULL,
    updated_at    timestamptz      NOT NULL,
    deleted_at    timestamptz,
    PRIMARY KEY (tenant_id, id)
);

-- Unique regardless of case. The slug of a deleted plan is free.
CREATE UNIQUE INDEX subscription_plans_slug ON subscription_plans (tenant_id, lower(slug)) WHERE deleted_at IS NULL;
-- With deleted plans, because subscriptions keep them.
CREATE INDEX subscription_plans_by_slug ON subscription_plans (tenant_id, lower(slug));
CREATE INDEX subscription_plans_by_age ON subscription_plans (tenant_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscription_plans_by_tier ON subscription_plans (tenant_id, tier, id) WHERE deleted_at IS NULL;
-- By what is sold at a payment provider.
CREATE INDEX subscription_plans_variants ON subscription_plans USING gin (variants) WHERE deleted_at IS NULL;
CREATE INDEX subscription_plans_product ON subscription_plans (tenant_id, product_id)
    WHERE deleted_at IS NULL AND product_id IS NOT NULL;


-- Subscriptions, their ledger and their payments ------------------------------------------------------------------------

CREATE TABLE subscriptions (
    tenant_id           uuid        NOT NULL,
    id                  uuid        NOT NULL,
    user_id             uuid        NOT NULL,
    plan_id             uuid        NOT NULL,
    -- The plan's price and cycle when the subscription was created or changed to the plan.
    price_minor         bigint      NOT NULL CHECK (price_minor BETWEEN 0 AND 1000000000000),
    currency            text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    plan_billing_cycle  text        NOT NULL CHECK (plan_billing_cycle IN
        ('daily', 'weekly', 'monthly', 'quarterly', 'semiannual', 'yearly', 'lifetime')),
    external_id         text        COLLATE "C",
    billing_cycle       text        NOT NULL CHECK (billing_cycle IN
        ('daily', 'weekly', 'monthly', 'quarterly', 'semiannual', 'yearly', 'lifetime')),
    custom_price_minor  bigint,
    quantity            integer     NOT NULL DEFAULT 1,
    -- As it was stored last. A subscription whose ends_at has passed is expired, stored or not.
    status              text        NOT NULL CHECK (status IN
        ('pending', 'on_trial', 'active', 'paused', 'past_due', 'unpaid', 'cancelled', 'expired')),
    suspended           boolean     NOT NULL,
    starts_at           timestamptz NOT NULL,
    renews_at           timestamptz CHECK (renews_at >= starts_at),
    ends_at             timestamptz CHECK (ends_at >= starts_at),
    -- Where cycles are counted from.
    anchor              timestamptz NOT NULL,
    -- Since when a payment is late.
    late_since          timestamptz,
    trial_plan_id       uuid,
    trial_ends_at       timestamptz,
    -- Managed billing: the credit, and the period that is paid for.
    credit_minor        bigint      NOT NULL DEFAULT 0,
    waived_debt_minor   bigint      NOT NULL DEFAULT 0,
    period_starts_at    timestamptz,
    period_ends_at      timestamptz,
    period_cycle        text,
    period_cost_minor   bigint,
    period_given_minor  bigint,
    period_waived_minor bigint,
    -- Free time: alone, or after the period.
    free_starts_at      timestamptz,
    free_ends_at        timestamptz,
    free_cycle          text,
    free_cost_minor     bigint,
    free_given_minor    bigint,
    free_waived_minor   bigint,
    free_until          timestamptz,
    managed_since       timestamptz,
    -- When the next transition of managed billing is due; infinity if none is.
    due_at              timestamptz NOT NULL,
    metadata            jsonb       NOT NULL DEFAULT '{}',
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id),
    FOREIGN KEY (tenant_id, plan_id) REFERENCES subscription_plans (tenant_id, id),
    CONSTRAINT subscriptions_custom_price CHECK (custom_price_minor BETWEEN 0 AND 1000000000000),
    CONSTRAINT subscriptions_quantity CHECK (quantity BETWEEN 1 AND 100000),
    CHECK (status NOT IN ('cancelled', 'expired') OR ends_at IS NOT NULL)
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX subscriptions_external_id ON subscriptions (tenant_id, external_id)
    WHERE deleted_at IS NULL AND external_id IS NOT NULL;

-- One for each order and filter of lists.
CREATE INDEX subscriptions_by_age ON subscriptions (tenant_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_by_update ON subscriptions (tenant_id, updated_at, id) WHERE deleted_at IS NULL;
-- Subscriptions without a renewal sort last.
CREATE INDEX subscriptions_by_next_renewal ON subscriptions (tenant_id, (coalesce(renews_at, 'infinity'::timestamptz)), id)
    WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_of_user ON subscriptions (tenant_id, user_id, created_at, id);
CREATE INDEX subscriptions_of_plan ON subscriptions (tenant_id, plan_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_of_plan_by_status ON subscriptions (tenant_id, plan_id, status, created_at, id)
    WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_by_status ON subscriptions (tenant_id, status, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_by_cycle ON subscriptions (tenant_id, billing_cycle, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_suspended_by_age ON subscriptions (tenant_id, created_at, id)
    WHERE deleted_at IS NULL AND suspended;
CREATE INDEX subscriptions_by_begin ON subscriptions (tenant_id, starts_at) WHERE deleted_at IS NULL;
CREATE INDEX subscriptions_by_end ON subscriptions (tenant_id, ends_at) WHERE deleted_at IS NULL AND ends_at IS NOT NULL;

-- Due transitions: ends in any tenant, and those of managed billing.
CREATE INDEX subscriptions_ending ON subscriptions (ends_at)
    WHERE deleted_at IS NULL AND status <> 'expired' AND ends_at IS NOT NULL;
CREATE INDEX subscriptions_due_at ON subscriptions (tenant_id, due_at)
    WHERE deleted_at IS NULL AND external_id IS NULL AND status <> 'expired';

-- A plan belongs to one tenant. Without this, the planner multiplies both probabilities and expects too few rows.
CREATE STATISTICS subscriptions_tenant_of_plan (dependencies) ON tenant_id, plan_id FROM subscriptions;
-- The planner does not use the statistics of the expression in a partial index.
CREATE STATISTICS subscriptions_next_renewal ON (coalesce(renews_at, 'infinity'::timestamptz)) FROM subscriptions;

-- The state that the last cancellation of a subscription replaced, so that the user can undo it. A cancellation with an end
-- of the server's choice has none.
CREATE TABLE subscription_cancellations (
    tenant_id       uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    -- Before the cancellation.
    status          text        NOT NULL,
    ends_at         timestamptz,
    -- The end that the cancellation set. If the subscription has another one, this row does not count.
    cancelled_until timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id)
);

-- Managed billing: payments are credit until a period starts. Each movement is an entry. Never changed.
CREATE TABLE ledger_entries (
    tenant_id          uuid        NOT NULL,
    subscription_id    uuid        NOT NULL,
    -- Unique within a subscription: entries of one change are one microsecond apart.
    created_at         timestamptz NOT NULL,
    id                 uuid        NOT NULL,
    type               text        NOT NULL CHECK (type IN ('payment', 'refund', 'period', 'change', 'waiver', 'extension')),
    cause              text        NOT NULL,
    currency           text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    amount_minor       bigint      NOT NULL,
    credit_after_minor bigint      NOT NULL,
    payment_id         uuid,
    period_starts_at   timestamptz,
    -- NULL with a start: a lifetime.
    period_ends_at     timestamptz,
    plan_id            uuid        NOT NULL,
    quantity           integer     NOT NULL,
    -- None of these for background tasks and commands.
    client_id          uuid,
    user_id            uuid,
    request_id         text,
    PRIMARY KEY (tenant_id, subscription_id, created_at, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);

CREATE TABLE subscription_payments (
    tenant_id        uuid        NOT NULL,
    id               uuid        NOT NULL,
    subscription_id  uuid        NOT NULL,
    amount_minor     bigint      NOT NULL CHECK (amount_minor BETWEEN 0 AND 1000000000000),
    currency         text        NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    external_id      text        COLLATE "C",
    status           text        NOT NULL CHECK (status IN
        ('pending', 'completed', 'failed', 'partially_refunded', 'refunded', 'disputed', 'void')),
    -- NULL if some was refunded and the amount is unknown.
    refunded_minor   bigint      CHECK (refunded_minor BETWEEN 0 AND amount_minor),
    paid_at          timestamptz,
    failure_reason   text,
    period_starts_at timestamptz,
    period_ends_at   timestamptz,
    -- The sum of the payment's ledger entries. NULL if it has none.
    ledger_amount    bigint,
    -- What its open dispute took, and what was waived of its refunds.
    disputed_minor   bigint      NOT NULL DEFAULT 0,
    waived_minor     bigint      NOT NULL DEFAULT 0,
    metadata         jsonb       NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    deleted_at       timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, subscription_id) REFERENCES subscriptions (tenant_id, id)
);

CREATE UNIQUE INDEX subscription_payments_external_id ON subscription_payments (tenant_id, external_id)
    WHERE deleted_at IS NULL AND external_id IS NOT NULL;
CREATE INDEX subscription_payments_of_subscription ON subscription_payments (tenant_id, subscription_id, created_at, id);
CREATE INDEX subscription_payments_by_age ON subscription_payments (tenant_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX subscription_payments_by_status ON subscription_payments (tenant_id, status, created_at, id)
    WHERE deleted_at IS NULL;
CREATE INDEX subscription_payments_by_currency ON subscription_payments (tenant_id, currency, created_at, id)
    WHERE deleted_at IS NULL;
CREATE INDEX subscription_payments_by_paid_at ON subscription_payments (tenant_id, paid_at, id)
    WHERE deleted_at IS NULL AND paid_at IS NOT NULL;


-- Events ----------------------------------------------------------------------------------------------------------------

-- Numbers events, and states of the reports, in the order of insertion.
CREATE SEQUENCE events_seq;

-- One row per change, inserted in its transaction: the audit trail, and the source of webhooks and reports.
CREATE TABLE events (
    tenant_id          uuid        NOT NULL,
    at                 timestamptz NOT NULL,
    id                 uuid        NOT NULL,
    kind               text        NOT NULL,
    -- The id of the changed record. The first word of the kind tells which record.
    subject_id         uuid        NOT NULL,
    -- The author. None of these for background tasks.
    client_id          uuid,
    user_id            uuid,
    staff_id           uuid,
    -- The operating system's user and host that ran a command.
    operator           text,
    -- The payment account whose provider reported the change.
    payment_account_id uuid,
    request_id         text,
    data               jsonb       NOT NULL,
    -- The transaction that recorded the event, and its place in the order of insertion. NULL if the event already has its
    -- position, because it was moved from another database.
    xact               xid8        DEFAULT pg_current_xact_id(),
    seq                bigint      DEFAULT nextval('events_seq'),
    -- The state of the subscription for reports, if it holds from the event on: user_id, plan_id, billing_cycle, currency,
    -- status, basis, suspended, imported and arr_minor, separated by spaces. So most requests write no second row and index.
    revenue_state      text,
    PRIMARY KEY (tenant_id, at, id)
) PARTITION BY RANGE (at);

CREATE INDEX events_subject ON events (tenant_id, subject_id, at);
CREATE INDEX events_xact ON events (xact) WHERE xact IS NOT NULL;

CREATE TABLE events_default PARTITION OF events DEFAULT;
SELECT create_partitions('events');

-- The event log in the order of commits. A sequencer gives each event a position in the log of its tenant after the event's
-- transaction is committed. Positions of a tenant are consecutive and start at 1.
CREATE TABLE event_log (
    tenant_id   uuid        NOT NULL,
    position    bigint      NOT NULL,
    -- When the event received its position.
    recorded_at timestamptz NOT NULL,
    -- The key of the event in `events`, and what readers filter by.
    at          timestamptz NOT NULL,
    event_id    uuid        NOT NULL,
    kind        text        NOT NULL,
    subject_id  uuid        NOT NULL,
    PRIMARY KEY (tenant_id, position)
);

-- Finds the entries of a record, the newest first, and with it the entry of an event.
CREATE INDEX event_log_subject ON event_log (tenant_id, subject_id, position);

-- Updated with each batch of events; the free space keeps the new row versions on their page.
CREATE TABLE event_log_tenants (
    tenant_id     uuid   NOT NULL PRIMARY KEY,
    last_position bigint NOT NULL,
    -- Retention has removed the entries up to this position.
    removed_to    bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);

-- The last day on which an event of a month received a position. Retention drops a month when all its entries are removed.
CREATE TABLE event_log_months (
    month            date NOT NULL PRIMARY KEY,
    last_recorded_on date NOT NULL
);

-- The state of the sequencer. Locked by each transaction that assigns positions.
CREATE TABLE event_log_state (
    is_only_row       boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (is_only_row),
    -- Identifies the history of positions. Changes when a position may have been assigned twice, to different events.
    epoch             uuid        NOT NULL DEFAULT gen_random_uuid(),
    -- Events of the transactions that are visible in this snapshot have positions, and no others.
    snapshot          pg_snapshot NOT NULL,
    -- The value of `events_seq` when the snapshot was stored.
    last_seq          bigint      NOT NULL DEFAULT 0,
    -- Events up to this value of `seq` have positions. They may be from another cluster, with unrelated transaction ids.
    copied_to_seq     bigint      NOT NULL DEFAULT 0,
    -- While a large number of events is numbered in pages: the snapshot of the last page, and where the next page starts.
    target_snapshot   pg_snapshot,
    paged_to_seq      bigint,
    -- When the sequencer last had numbered all visible events.
    caught_up_at      timestamptz NOT NULL DEFAULT now(),
    -- The cluster, its timeline, the database and this table. A copy of the database differs in one of them.
    system_identifier bigint      NOT NULL,
    timeline          bigint      NOT NULL,
    database_oid      bigint      NOT NULL,
    table_oid         bigint      NOT NULL
);

-- The name of a segment of the write-ahead log starts with the timeline. The control file has the one of the last
-- checkpoint.
CREATE FUNCTION event_log_history(
    OUT system_identifier bigint, OUT timeline bigint, OUT database_oid bigint, OUT table_oid bigint
) STABLE LANGUAGE sql AS $$
    SELECT (SELECT cluster.system_identifier FROM pg_control_system() AS cluster),
        ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
        (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
        'event_log_state'::regclass::oid::bigint
$$;

INSERT INTO event_log_state (snapshot, system_identifier, timeline, database_oid, table_oid)
SELECT pg_current_snapshot(), system_identifier, timeline, database_oid, table_oid FROM event_log_history();

-- Waits until no transaction that has recorded an event is open, and prevents new ones until the end of the transaction.
CREATE FUNCTION events_lock() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE;
END
$$;

-- Returns whether a month of events can be dropped, and forgets it then: all older entries of the log are removed, and each
-- event of the month had a position that was removed too. Locks the month before it reads the final answer.
CREATE FUNCTION events_release_month(partition text, kept_from timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    state     event_log_state%ROWTYPE;
    is_needed boolean;
BEGIN
    IF EXISTS (
        SELECT FROM event_log_tenants AS head
        JOIN event_log ON event_log.tenant_id = head.tenant_id AND position = removed_to + 1
        WHERE recorded_at < kept_from
    ) OR EXISTS (
        SELECT FROM event_log_months AS recorded
        WHERE partition_name('events', recorded.month::timestamp AT TIME ZONE 'UTC') = partition
          AND last_recorded_on >= (kept_from AT TIME ZONE 'UTC')::date
    ) THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', partition);
    SELECT * INTO STRICT state FROM event_log_state;
    EXECUTE format(
        'SELECT EXISTS (
            SELECT FROM %1$I WHERE seq > $2
              AND xact >= pg_snapshot_xmax($1) AND xact < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY xact OFFSET 0)
         OR EXISTS (
            SELECT FROM %1$I WHERE seq > $2 AND xact = ANY (ARRAY(SELECT pg_snapshot_xip($1))) ORDER BY xact OFFSET 0)',
        partition)
    INTO is_needed USING state.snapshot, state.copied_to_seq;
    IF is_needed THEN
        RETURN false;
    END IF;
    DELETE FROM event_log_months AS recorded
    WHERE partition_name('events', recorded.month::timestamp AT TIME ZONE 'UTC') = partition
      AND last_recorded_on < (kept_from AT TIME ZONE 'UTC')::date;
    RETURN NOT EXISTS (
        SELECT FROM event_log_months AS recorded
        WHERE partition_name('events', recorded.month::timestamp AT TIME ZONE 'UTC') = partition);
END
$$;

-- How far the events of each tenant are published to a stream of a message broker. The last message of the stream decides,
-- but the broker may have deleted it.
CREATE TABLE event_relay_positions (
    tenant_id uuid        NOT NULL,
    stream    text        NOT NULL COLLATE "C",
    -- Another one if the stream was deleted and created again.
    stream_id text        NOT NULL,
    position  bigint      NOT NULL,
    saved_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, stream)
);


-- Webhooks --------------------------------------------------------------------------------------------------------------

-- An endpoint has one position in its tenant's event log: all events up to it are delivered or have a row in
-- webhook_retries. No payload is copied.
CREATE TABLE webhook_endpoints (
    tenant_id                  uuid        NOT NULL,
    id                         uuid        NOT NULL,
    url                        text        NOT NULL,
    description                text,
    -- Empty: all types that a tenant can see.
    event_types                text[]      NOT NULL,
    delivery_order             text        NOT NULL,
    status                     text        NOT NULL,
    disabled_reason            text,
    disabled_at                timestamptz,
    -- Encrypted with a key derived from the master key. The previous secret signs too until it expires.
    secret                     bytea       NOT NULL,
    previous_secret            bytea,
    previous_secret_expires_at timestamptz,
    created_at                 timestamptz NOT NULL,
    updated_at                 timestamptz NOT NULL,
    deleted_at                 timestamptz,
    -- Delivery.
    position                   bigint      NOT NULL,
    -- When the first failed attempt after the last success was made.
    failing_since              timestamptz,
    -- Failed attempts since the last success.
    failures_in_a_row          integer     NOT NULL DEFAULT 0,
    -- No request is sent before.
    paused_until               timestamptz,
    -- When a process must claim the endpoint, besides when the log grows. May be too early.
    due_at                     timestamptz,
    -- The process that delivers to the endpoint.
    lease_holder               uuid,
    leased_until               timestamptz,
    PRIMARY KEY (tenant_id, id)
) WITH (fillfactor = 70);

CREATE INDEX webhook_endpoints_by_age ON webhook_endpoints (tenant_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_enabled ON webhook_endpoints (tenant_id, id) WHERE status = 'enabled' AND deleted_at IS NULL;
CREATE INDEX webhook_endpoints_due ON webhook_endpoints (due_at)
    WHERE due_at IS NOT NULL AND leased_until IS NULL AND status = 'enabled' AND deleted_at IS NULL;
CREATE INDEX webhook_endpoints_leased ON webhook_endpoints (leased_until)
    WHERE leased_until IS NOT NULL AND status = 'enabled' AND deleted_at IS NULL;
CREATE INDEX webhook_endpoints_failing ON webhook_endpoints (failing_since) WHERE failing_since IS NOT NULL;

-- One row per event that failed, or that waits for an earlier event of its subject.
CREATE TABLE webhook_retries (
    tenant_id       uuid        NOT NULL,
    endpoint_id     uuid        NOT NULL,
    position        bigint      NOT NULL,
    subject_id      uuid        NOT NULL,
    failed_attempts integer     NOT NULL,
    -- When the first attempt failed, or when the event started to wait if there was no attempt.
    since           timestamptz NOT NULL,
    -- NULL while an earlier event of the subject is retried, and after the event was given up.
    next_attempt_at timestamptz,
    given_up_at     timestamptz,
    PRIMARY KEY (tenant_id, endpoint_id, position)
);

CREATE INDEX webhook_retries_due ON webhook_retries (tenant_id, endpoint_id, next_attempt_at)
    WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_retries_by_subject ON webhook_retries (tenant_id, endpoint_id, subject_id, position)
    WHERE given_up_at IS NULL;
CREATE INDEX webhook_retries_given_up ON webhook_retries (given_up_at) WHERE given_up_at IS NOT NULL;

-- A second pass over a range of positions.
CREATE TABLE webhook_replays (
    tenant_id   uuid        NOT NULL,
    endpoint_id uuid        NOT NULL,
    id          uuid        NOT NULL,
    -- Events after it and up to last_position are sent again. It moves with the replay.
    position      bigint    NOT NULL,
    last_position bigint    NOT NULL,
    event_types text[]      NOT NULL,
    -- Only events that were given up.
    only_failed boolean     NOT NULL,
    created_at  timestamptz NOT NULL,
    finished_at timestamptz,
    PRIMARY KEY (tenant_id, endpoint_id, id)
);

CREATE INDEX webhook_replays_unfinished ON webhook_replays (tenant_id, endpoint_id, id) WHERE finished_at IS NULL;

-- The log of attempts. A partition per day, so that old ones can be dropped at once.
CREATE TABLE webhook_attempts (
    tenant_id   uuid        NOT NULL,
    endpoint_id uuid        NOT NULL,
    created_at  timestamptz NOT NULL,
    id          uuid        NOT NULL,
    event_id    uuid        NOT NULL,
    kind        text        NOT NULL,
    -- NULL for a test.
    position    bigint,
    -- 1 for the first attempt.
    attempt     integer     NOT NULL,
    is_success  boolean     NOT NULL,
    -- The HTTP status, or NULL if there was no response.
    status_code integer,
    error       text,
    duration_ms integer     NOT NULL,
    PRIMARY KEY (tenant_id, endpoint_id, created_at, id)
) PARTITION BY RANGE (created_at);

CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;
SELECT create_partitions('webhook_attempts');


-- Accounts with payment providers, and what the providers report --------------------------------------------------------

CREATE TABLE payment_accounts (
    tenant_id           uuid        NOT NULL,
    id                  uuid        NOT NULL,
    provider            text        NOT NULL,
    -- 'test' or 'live'. Notifications of the other mode are refused.
    mode                text        NOT NULL,
    description         text,
    -- The provider's id of the account or store. Notifications that name another one are refused.
    external_account_id text,
    -- Encrypted with a key derived from the master key. NULL after the account was deleted.
    api_key             bytea,
    -- Whether a customer without a user gets one. Otherwise the subscription waits for a user.
    creates_users       boolean     NOT NULL DEFAULT true,
    -- Up to where the provider's list of events was read.
    cursor              text,
    -- When a notification was received. Exact to a minute.
    last_heard_at       timestamptz,
    last_reconciled_at  timestamptz,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    deleted_at          timestamptz,
    PRIMARY KEY (tenant_id, id)
);

CREATE INDEX payment_accounts_by_age ON payment_accounts (tenant_id, created_at, id) WHERE deleted_at IS NULL;

-- The secrets that verify an account's notifications: one, and for a day after a rotation also the previous one.
CREATE TABLE payment_account_secrets (
    tenant_id  uuid        NOT NULL,
    account_id uuid        NOT NULL,
    id         uuid        NOT NULL,
    -- Encrypted with a key derived from the master key.
    secret     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    -- NULL for the present secret.
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, account_id, id)
);

-- The present secret of an account.
CREATE UNIQUE INDEX payment_account_secrets_present ON payment_account_secrets (tenant_id, account_id)
    WHERE expires_at IS NULL;

-- What a provider has an id for: a subscription, an invoice, …. A notification only says that the object may have changed:
-- it increments wanted. A worker notes wanted, reads the object from the provider, applies it and sets seen to what it
-- noted.
CREATE TABLE payment_objects (
    tenant_id        uuid        NOT NULL,
    account_id       uuid        NOT NULL,
    kind             text        NOT NULL,
    external_id      text        NOT NULL COLLATE "C",
    -- The subscription or payment that follows the object.
    record_id        uuid,
    -- The latest fact that was applied, and the provider's version of the object, if it has one.
    fact             jsonb,
    fact_version     text,
    wanted           bigint      NOT NULL,
    seen             bigint      NOT NULL DEFAULT 0,
    -- Since when wanted is greater than seen. NULL if both are equal.
    dirty_since      timestamptz,
    -- When a worker must claim the object. NULL if wanted equals seen.
    due_at           timestamptz,
    -- Failed attempts since the last success.
    attempts         integer     NOT NULL DEFAULT 0,
    -- Why the last attempt has not applied the object. NULL after one that has. An object with a reason that is not due
    -- has failed: a person must repair something.
    reason           text,
    -- What the object waits for: 'subscription', 'plan' or 'user'. NULL if it does not wait. It is fetched again when a
    -- record with one of the ids appears, or for a user, when any user is created after waits_since.
    waits_for        text,
    waits_for_ids    text[],
    waits_since      timestamptz,
    -- Incremented by each claim. A worker whose generation is not current must not store anything.
    lease_generation bigint      NOT NULL DEFAULT 0,
    lease_holder     uuid,
    leased_until     timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, kind, external_id)
) WITH (fillfactor = 80);

CREATE INDEX payment_objects_due ON payment_objects (due_at) WHERE due_at IS NOT NULL AND leased_until IS NULL;
CREATE INDEX payment_objects_leased ON payment_objects (leased_until) WHERE leased_until IS NOT NULL;
CREATE INDEX payment_objects_dirty ON payment_objects (tenant_id, account_id) WHERE due_at IS NOT NULL;
CREATE INDEX payment_objects_behind ON payment_objects (dirty_since) WHERE dirty_since IS NOT NULL AND waits_for IS NULL;
CREATE INDEX payment_objects_waiting ON payment_objects (tenant_id, account_id) WHERE waits_for IS NOT NULL;
CREATE INDEX payment_objects_failed ON payment_objects (tenant_id, account_id, updated_at)
    WHERE reason IS NOT NULL AND due_at IS NULL;
CREATE INDEX payment_objects_by_record ON payment_objects (tenant_id, record_id) WHERE record_id IS NOT NULL;

-- The ids of received notifications, to recognize repeated ones. A unique constraint of the partitioned table below would
-- have to contain its time.
CREATE TABLE payment_event_ids (
    tenant_id       uuid        NOT NULL,
    account_id      uuid        NOT NULL,
    event_id        text        NOT NULL COLLATE "C",
    notification_id uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, event_id)
);

CREATE INDEX payment_event_ids_by_age ON payment_event_ids (created_at);

-- Received notifications. A partition per month, so that old ones can be dropped at once.
CREATE TABLE payment_notifications (
    tenant_id       uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    id              uuid        NOT NULL,
    account_id      uuid        NOT NULL,
    -- The provider's id and type of the event.
    event_id        text        NOT NULL COLLATE "C",
    event_type      text        NOT NULL COLLATE "C",
    -- The object that the event is about, if it is of a known type.
    object_kind     text,
    object_id       text        COLLATE "C",
    state           text        NOT NULL,
    -- Why the notification is ignored, waiting, failed or refused.
    reason          text,
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    -- The received bytes, encrypted with a key derived from the master key.
    body            bytea       NOT NULL,
    PRIMARY KEY (tenant_id, created_at, id)
) PARTITION BY RANGE (created_at);

CREATE INDEX payment_notifications_by_id ON payment_notifications (tenant_id, id);
CREATE INDEX payment_notifications_by_state ON payment_notifications (tenant_id, state, created_at, id);
CREATE INDEX payment_notifications_by_object ON payment_notifications (tenant_id, object_id, account_id, created_at)
    WHERE object_id IS NOT NULL;

CREATE TABLE payment_notifications_default PARTITION OF payment_notifications DEFAULT;
SELECT create_partitions('payment_notifications');

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

-- What a payment provider must be told about one of its subscriptions: the latest command. It is sent until the provider
-- acknowledges it.
CREATE TABLE payment_commands (
    tenant_id        uuid        NOT NULL,
    account_id       uuid        NOT NULL,
    -- The provider's id of the subscription.
    external_id      text        NOT NULL COLLATE "C",
    -- 'cancel' at the end of the period, 'resume' before it, or 'end' at once.
    command          text        NOT NULL,
    -- When the subscription is to be cancelled, if not at the end of the period.
    ends_at          timestamptz,
    -- Incremented by each new command. A worker acknowledges only the version that it sent.
    version          bigint      NOT NULL DEFAULT 1,
    -- Failed attempts to send this version, and why the last one failed.
    attempts         integer     NOT NULL DEFAULT 0,
    reason           text,
    -- NULL after the acknowledgment.
    next_attempt_at  timestamptz,
    acknowledged_at  timestamptz,
    -- Incremented by each claim. Commands about one subscription are not sent at the same time.
    lease_generation bigint      NOT NULL DEFAULT 0,
    leased_until     timestamptz,
    created_at       timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, account_id, external_id)
);

CREATE INDEX payment_commands_due ON payment_commands (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX payment_commands_pending ON payment_commands (tenant_id, account_id, created_at) WHERE acknowledged_at IS NULL;


-- Reports: recurring revenue, churn, trials, cohorts and payments -------------------------------------------------------

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

-- The generations of a tenant's sums. A tenant without a row has generation 0.
CREATE TABLE report_state (
    tenant_id              uuid    NOT NULL PRIMARY KEY,
    generation             integer NOT NULL DEFAULT 0,
    -- The generation that a rebuild writes, and the last user and payment that it contains.
    rebuild_generation     integer,
    rebuilt_users_to       uuid,
    rebuilt_payments_to    uuid
);

-- The state of the roll-up.
CREATE TABLE report_installation (
    is_only_row       boolean     NOT NULL DEFAULT true PRIMARY KEY CHECK (is_only_row),
    -- The roll-up has read the states in the events of the transactions that are visible in this snapshot, and no others.
    snapshot          pg_snapshot NOT NULL DEFAULT pg_current_snapshot(),
    -- It has also read those of the events up to this value of `seq`, which may be from another cluster.
    copied_to_seq     bigint      NOT NULL DEFAULT 0,
    -- The cluster of the snapshot. In a copy of the database in another cluster, the snapshot means nothing.
    system_identifier bigint      NOT NULL
);

INSERT INTO report_installation (system_identifier) SELECT system_identifier FROM pg_control_system();

-- Numbers events and states after all that the tables have: a logical replica has the rows, but not the value of the
-- sequence.
CREATE FUNCTION events_advance_sequence() RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    SELECT setval('events_seq', greatest(last_value, (SELECT max(seq) FROM events),
        (SELECT max(seq) FROM pending_revenue_changes), (SELECT max(seq) FROM revenue_changes), 1)) FROM events_seq
$$;

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


-- Privileges ------------------------------------------------------------------------------------------------------------

-- The serving role cannot change the schema. It may call the functions that maintain partitions and the event log, which
-- run with the privileges of their owner: with a fixed search path and temporary tables last, so that a caller cannot
-- substitute a table or function of its own. `perennial migrate --grant-to` lets a role call them.
DO $$
DECLARE
    signature regprocedure;
BEGIN
    FOR signature IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace AND prosecdef AND proowner = current_user::regrole
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', signature, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    END LOOP;
END
$$;
