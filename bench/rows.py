"""Generates two years of data and loads it with COPY.

Every value is a function of a row number: the tenant of the n-th user, its email address, its subscription and payments, their
times and ids. So rows are generated without lookups and in order of time, and a measurement can compute the ids of any row.

One server process generates the rows (`COPY (SELECT …) TO STDOUT`), and another one loads them (`COPY … FROM STDIN`). Indexes
without a constraint are dropped before and rebuilt afterwards. Foreign keys are checked after loading.
"""

import os
import subprocess
import time
import typing

from harness import BIN, run

PLANS = 60
# The length of the history. The last subscription is created two months before its end, so that it has three payments too.
MONTHS = 24
DAY = 86400

FUNCTIONS = """
CREATE FUNCTION pg_temp.at(n bigint) RETURNS float8 STABLE LANGUAGE sql AS 'SELECT {start} + {step} * $1';
CREATE FUNCTION pg_temp.iso(at float8) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT to_char(to_timestamp($1), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')$$;
-- A UUIDv7, as the service creates them: milliseconds, then random bits.
CREATE FUNCTION pg_temp.hex(kind text, n bigint, at float8) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT lpad(to_hex(($3 * 1000)::bigint), 12, '0')
        || overlay(overlay(substr(md5($1 || $2), 1, 20) PLACING '7' FROM 1 FOR 1) PLACING '8' FROM 5 FOR 1)$$;
-- The first tenant has a third of all users.
CREATE FUNCTION pg_temp.tenant(n bigint) RETURNS integer STABLE LANGUAGE sql
    AS 'SELECT CASE WHEN {tenants} = 1 OR $1 % 3 = 0 THEN 1 ELSE 2 + ($1 / 3)::int % greatest(1, {tenants} - 1) END';
-- One user in ten has two subscriptions, and one has none.
CREATE FUNCTION pg_temp.owner(n bigint) RETURNS bigint STABLE LANGUAGE sql AS 'SELECT $1 - ($1 % 10 = 9)::int';
CREATE FUNCTION pg_temp.of(n bigint) RETURNS integer STABLE LANGUAGE sql AS 'SELECT pg_temp.tenant(pg_temp.owner($1))';
CREATE FUNCTION pg_temp.email(n bigint) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT substr(md5('e' || $1), 1, 8) || $1 || '@example.com'$$;
CREATE FUNCTION pg_temp.usr(n bigint) RETURNS text STABLE LANGUAGE sql AS $$SELECT pg_temp.hex('u', $1, pg_temp.at($1))$$;
-- Two thirds of the plans have no subscription. Plan and status are correlated: some plans have no past due subscription.
CREATE FUNCTION pg_temp.plan_of(n bigint) RETURNS integer STABLE LANGUAGE sql AS 'SELECT 1 + ($1 / 7)::int % ({plans} / 3)';
CREATE FUNCTION pg_temp.plan(tenant integer, k integer) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT pg_temp.hex('plan', $1 * 1000 + $2, {start} + $2)$$;
CREATE FUNCTION pg_temp.price(n bigint) RETURNS integer STABLE LANGUAGE sql AS 'SELECT 999 + 100 * pg_temp.plan_of($1)';
CREATE FUNCTION pg_temp.sub(n bigint) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT pg_temp.hex('s', $1, pg_temp.at($1) + 60)$$;
-- One in a hundred has passed its end, but its stored status is not updated yet.
CREATE FUNCTION pg_temp.status(n bigint) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT CASE WHEN $1 % 100 < 70 THEN 'active' WHEN $1 % 100 < 76 THEN 'on_trial' WHEN $1 % 100 < 82 THEN 'past_due'
        WHEN $1 % 100 < 90 THEN 'cancelled' ELSE 'expired' END$$;
CREATE FUNCTION pg_temp.renews(n bigint) RETURNS float8 STABLE LANGUAGE sql
    AS $$SELECT CASE pg_temp.status($1) WHEN 'expired' THEN NULL WHEN 'past_due' THEN {now} - {day} * (1 + $1 % 6)
        ELSE {now} + {day} * (1 + ($1 / 3) % 29) + $1 % {day} END$$;
CREATE FUNCTION pg_temp.ends(n bigint) RETURNS float8 STABLE LANGUAGE sql
    AS $$SELECT CASE WHEN $1 % 100 = 89 THEN {now} - 3600 WHEN pg_temp.status($1) = 'cancelled' THEN pg_temp.renews($1)
        WHEN pg_temp.status($1) = 'expired' THEN pg_temp.at($1) + 40 * {day} END$$;
-- The k-th payment of a subscription is created k months after it.
CREATE FUNCTION pg_temp.paid(n bigint, k integer) RETURNS float8 STABLE LANGUAGE sql
    AS 'SELECT pg_temp.at($1 + $2 * {month}) + 120';
CREATE FUNCTION pg_temp.pay(n bigint, k integer) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT pg_temp.hex('p', $1 * 3 + $2, pg_temp.paid($1, $2))$$;
CREATE FUNCTION pg_temp.settled(n bigint, k integer) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT CASE WHEN $2 = 2 AND $1 % 5 = 0 THEN 'pending' WHEN $1 % 50 = 1 THEN 'refunded' ELSE 'completed' END$$;
CREATE FUNCTION pg_temp.provider_id(n bigint, k integer) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT 'pi_' || substr(md5('x' || ($1 * 3 + $2)), 1, 24)$$;
-- The data of an event is the API's representation of the record.
CREATE FUNCTION pg_temp.sub_view(n bigint) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT '{{"id": "sub_' || pg_temp.sub($1) || '", "user_id": "usr_' || pg_temp.usr(pg_temp.owner($1))
        || '", "external_user_id": "customer-' || pg_temp.owner($1)
        || '", "subscription_plan_slug": "plan-' || pg_temp.plan_of($1) || '", "subscription_plan_id": "plan_' || pg_temp.plan(pg_temp.of($1), pg_temp.plan_of($1))
        || '", "external_subscription_id": null, "billing_cycle": "monthly", "quantity": 1, "status": "active", "is_active": true, "suspended": false, "lifecycle": "recorded", "renews_at": "'
        || pg_temp.iso(pg_temp.at($1 + {month}) + 60) || '", "starts_at": "' || pg_temp.iso(pg_temp.at($1) + 60)
        || '", "ends_at": null, "current_period_starts_at": null, "current_period_ends_at": null, "free_until": null, "paid_until": null, "credit": null, "amount_due": null, "price": ' || pg_temp.price($1) / 100 || '.99, "currency": "USD", "metadata": {{}}, "created_at": "'
        || pg_temp.iso(pg_temp.at($1) + 60) || '", "updated_at": "' || pg_temp.iso(pg_temp.at($1) + 60) || '"}}'$$;
CREATE FUNCTION pg_temp.pay_view(n bigint, k integer) RETURNS text STABLE LANGUAGE sql
    AS $$SELECT '{{"id": "pay_' || pg_temp.pay($1, $2) || '", "subscription_id": "sub_' || pg_temp.sub($1)
        || '", "amount": ' || pg_temp.price($1) / 100 || '.99, "currency": "USD", "external_payment_id": "'
        || pg_temp.provider_id($1, $2) || '", "status": "completed", "refunded_amount": 0.00, "paid_at": "' || pg_temp.iso(pg_temp.paid($1, $2))
        || '", "failure_reason": null, "period_starts_at": null, "period_ends_at": null, "metadata": {{}}, "created_at": "'
        || pg_temp.iso(pg_temp.paid($1, $2)) || '", "updated_at": "' || pg_temp.iso(pg_temp.paid($1, $2)) || '"}}'$$;
SET TimeZone = 'UTC';
"""


# Gives each loaded event its position at the time of the event, as the sequencer would have done. The log contains at most the
# events of the commands that created tenants and clients.
NUMBER_EVENTS = """
BEGIN;
SELECT FROM event_log_state FOR UPDATE;
INSERT INTO event_log (tenant_id, position, recorded_at, at, event_id, kind, subject_id)
SELECT tenant_id, coalesce(last_position, 0) + row_number() OVER (PARTITION BY tenant_id ORDER BY at, id), at, at, id, kind, subject_id
FROM events LEFT JOIN event_log_tenants USING (tenant_id) WHERE xact IS NULL;
INSERT INTO event_log_tenants (tenant_id, last_position) SELECT tenant_id, max(position) FROM event_log GROUP BY tenant_id
ON CONFLICT (tenant_id) DO UPDATE SET last_position = excluded.last_position;
INSERT INTO event_log_months AS known (month, last_recorded_on)
SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date, max(at AT TIME ZONE 'UTC')::date FROM events WHERE xact IS NULL GROUP BY 1
ON CONFLICT (month) DO UPDATE SET last_recorded_on = greatest(known.last_recorded_on, excluded.last_recorded_on);
COMMIT;
"""


class Table(typing.NamedTuple):
    """A table: the number of rows by the number of users, the FROM clause that generates row numbers, and each column."""

    name: str
    rows: typing.Callable
    numbers: str
    columns: dict


TENANT, CLIENT = "('{tenants}'::uuid[])[%s]", "('{clients}'::uuid[])[%s]"
ISSUER = "'urn:perennial:sandbox'"


def timestamp(seconds):
    return f"to_timestamp({seconds})"


def row_numbers(last, name="n"):
    return f"(SELECT generate_series(1, {last}) AS {name}) AS numbers"


TABLES = [
    Table("subscription_plans", lambda users: PLANS, "generate_series(1, {tenant_count}) AS t, generate_series(1, {plans}) AS k", {
        "tenant_id": TENANT % "t", "id": "pg_temp.plan(t, k)", "slug": "'plan-' || k", "name": "'Plan ' || k", "variants": "'{{}}'",
        "price_minor": "999 + 100 * k", "currency": "'USD'", "billing_cycle": "'monthly'",
        "description": "'For teams that ship every day.'", "node_quota": "25", "features": "'SSO, Audit log, Support'",
        "most_popular": "k = 2", "tier": "k", "is_active": "true", "created_at": timestamp("{start} + k"), "updated_at": timestamp("{start} + k"),
    }),
    Table("users", lambda users: users, row_numbers("{users}"), {
        "tenant_id": TENANT % "pg_temp.tenant(n)", "id": "pg_temp.usr(n)", "email": "pg_temp.email(n)", "email_key": "pg_temp.email(n)",
        "external_id": "'customer-' || n", "created_at": timestamp("pg_temp.at(n)"), "updated_at": timestamp("pg_temp.at(n)"),
    }),
    Table("identities", lambda users: users, row_numbers("{users}"), {
        "tenant_id": TENANT % "pg_temp.tenant(n)", "issuer": ISSUER,
        "subject": "translate(encode(sha256(pg_temp.email(n)::bytea), 'base64'), '+/=', '-_')", "user_id": "pg_temp.usr(n)",
        "created_at": timestamp("pg_temp.at(n)"),
    }),
    # Every second session was revoked two days ago.
    Table("sessions", lambda users: users // 5, row_numbers("{users} / 5"), {
        "tenant_id": TENANT % "pg_temp.tenant(n * 5)", "id": "pg_temp.hex('ses', n, {now} - {day} * 9 + n % {day})",
        "user_id": "pg_temp.usr(n * 5)", "client_id": CLIENT % "pg_temp.tenant(n * 5)", "issuer": ISSUER, "address": "'192.0.2.1'",
        "user_agent": "'Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0'",
        "salt": "'\\x' || md5('salt' || n)", "generation": "3", "confirmed_generation": "3",
        "refreshed_at": timestamp("{now} - {day} * 3"), "created_at": timestamp("{now} - {day} * 9 + n % {day}"),
        "last_used_at": timestamp("{now} - {day} * 3"), "expires_at": timestamp("{now} + {day} * 11"), "number": "n", "refresh_key_id": "0",
        "ended_at": f"CASE n % 2 WHEN 0 THEN {timestamp('{now} - {day} * 2')} END",
    }),
    # Half of the keys have expired.
    Table("idempotency_keys", lambda users: users // 10, row_numbers("{users} / 10"), {
        "tenant_id": TENANT % "pg_temp.of(n)", "scope_hash": "sha256(('k' || n)::bytea)", "fingerprint": "sha256(('f' || n)::bytea)",
        "location": "'/subscription-payments/pay_' || pg_temp.pay(n, 0)", "body": "pg_temp.pay_view(n, 0)",
        "created_at": timestamp("{now} - 3600 - {day} * (n % 2)"), "expires_at": timestamp("{now} - 3600 + {day} * (1 - n % 2)"),
    }),
    Table("subscriptions", lambda users: users, row_numbers("{users}"), {
        "tenant_id": TENANT % "pg_temp.of(n)", "id": "pg_temp.sub(n)", "user_id": "pg_temp.usr(pg_temp.owner(n))",
        "plan_id": "pg_temp.plan(pg_temp.of(n), pg_temp.plan_of(n))", "price_minor": "pg_temp.price(n)", "currency": "'USD'",
        "plan_billing_cycle": "'monthly'", "external_id": "CASE n % 4 WHEN 0 THEN 'sub_ext_' || n END", "billing_cycle": "'monthly'",
        "status": "pg_temp.status(n)", "suspended": "n % 50 = 7", "starts_at": timestamp("pg_temp.at(n) + 60"),
        "renews_at": timestamp("pg_temp.renews(n)"), "ends_at": timestamp("pg_temp.ends(n)"), "anchor": timestamp("pg_temp.at(n) + 60"), "quantity": "1",
        "credit_minor": "0",
        "due_at": f"coalesce(CASE WHEN n % 4 <> 0 THEN {timestamp('pg_temp.renews(n)')} END, 'infinity')",
        "late_since": f"CASE pg_temp.status(n) WHEN 'past_due' THEN {timestamp('pg_temp.renews(n)')} END",
        "created_at": timestamp("pg_temp.at(n) + 60"), "updated_at": timestamp("pg_temp.at(n) + 60"),
    }),
    Table("subscription_payments", lambda users: users * 3,
        row_numbers("{users} + 2 * {month}", "i") + ", generate_series(0, 2) AS k, LATERAL (SELECT i - k * {month} AS n) AS its WHERE n BETWEEN 1 AND {users}", {
        "tenant_id": TENANT % "pg_temp.of(n)", "id": "pg_temp.pay(n, k)", "subscription_id": "pg_temp.sub(n)",
        "amount_minor": "pg_temp.price(n)", "currency": "'USD'", "external_id": "pg_temp.provider_id(n, k)",
        "status": "pg_temp.settled(n, k)", "refunded_minor": "CASE pg_temp.settled(n, k) WHEN 'refunded' THEN pg_temp.price(n) ELSE 0 END",
        "paid_at": f"CASE pg_temp.settled(n, k) WHEN 'pending' THEN NULL ELSE {timestamp('pg_temp.paid(n, k)')} END",
        "created_at": timestamp("pg_temp.paid(n, k)"), "updated_at": timestamp("pg_temp.paid(n, k)"),
    }),
    # The creation of each subscription and of one of its payments.
    Table("events", lambda users: users * 2,
        row_numbers("{users} + {month}", "i") + ", generate_series(0, 1) AS k, LATERAL (SELECT i - k * {month} AS n) AS its WHERE n BETWEEN 1 AND {users}", {
        "tenant_id": TENANT % "pg_temp.of(n)", "at": timestamp("CASE k WHEN 0 THEN pg_temp.at(n) + 60 ELSE pg_temp.paid(n, 1) END"),
        "id": "pg_temp.hex('evt' || k, n, pg_temp.at(i))", "kind": "CASE k WHEN 0 THEN 'subscription.created' ELSE 'payment.created' END",
        "subject_id": "CASE k WHEN 0 THEN pg_temp.sub(n) ELSE pg_temp.pay(n, 1) END", "client_id": CLIENT % "pg_temp.of(n)",
        "request_id": "'req_' || md5('r' || k || n)", "data": "CASE k WHEN 0 THEN pg_temp.sub_view(n) ELSE pg_temp.pay_view(n, 1) END",
    }),
]


def psql(url, *statements, options=""):
    """Runs statements in one session and returns their output."""
    environment = {**os.environ, "PGOPTIONS": options}
    arguments = [part for statement in statements for part in ("-c", statement)]
    return run(str(BIN / "psql"), "-qAtX", "-v", "ON_ERROR_STOP=1", url, *arguments, env=environment).strip()


def timed(url, statement):
    """Runs a statement and returns its duration in seconds."""
    started_at = time.monotonic()
    psql(url, statement)
    return time.monotonic() - started_at


class History:
    """The data of one database. `tenants` lists the ids of each tenant and its client."""

    def __init__(self, url, users, tenants):
        self.url, self.users = url, users
        now = int(time.time())
        length = MONTHS * 30 * DAY
        # The number of subscriptions created per month; two months without any follow.
        month = users // (MONTHS - 2)
        self.values = {
            "users": users, "month": month, "now": now, "day": DAY, "start": now - length - DAY, "step": length / (users + 2 * month + 1),
            "plans": PLANS, "tenant_count": len(tenants), "tenants": "{%s}" % ",".join(tenant for tenant, _ in tenants),
            "clients": "{%s}" % ",".join(client for _, client in tenants),
        }
        self.functions = FUNCTIONS.format(**{**self.values, "tenants": len(tenants)})
        self.tenants = len(tenants)

    def rows(self, table):
        return table.rows(self.users) * (self.tenants if table.name == "subscription_plans" else 1)

    def evaluate(self, expressions, numbers):
        """Evaluates expressions for each row number; returns lists of strings."""
        listed = ",".join(str(number) for number in numbers)
        columns = ", ".join(expressions).format(**self.values)
        out = psql(self.url, self.functions, f"SELECT {columns} FROM unnest('{{{listed}}}'::bigint[]) AS n")
        return [line.split("|") for line in out.splitlines()]

    def load(self, show_progress):
        """Fills all tables. Returns the seconds of COPY, VACUUM and ANALYZE by table, and of each index build."""
        times = {"copy": {}, "vacuum": {}, "index": {}, "analyze": {}}
        names = [table.name for table in TABLES]
        indexes = self.drop_indexes(names)
        # Without `xact`, the sequencer does not number them again.
        psql(self.url, "ALTER TABLE events ALTER COLUMN xact DROP DEFAULT, ALTER COLUMN seq DROP DEFAULT")
        for table in TABLES:
            times["copy"][table.name] = self.copy(table, show_progress)
        psql(self.url, "ALTER TABLE events ALTER COLUMN xact SET DEFAULT pg_current_xact_id(), "
            "ALTER COLUMN seq SET DEFAULT nextval('events_seq')")
        show_progress("event log")
        psql(self.url, NUMBER_EVENTS)
        psql(self.url, "VACUUM ANALYZE event_log, event_log_tenants, event_log_months")
        for name in names:
            show_progress(f"VACUUM {name}")
            times["vacuum"][name] = timed(self.url, f"VACUUM {name}")
        for name, definition in indexes:
            show_progress(f"index {name}")
            times["index"][name] = timed(self.url, definition)
        for name in names:
            times["analyze"][name] = timed(self.url, f"ANALYZE {name}")
        show_progress("checking foreign keys")
        self.validate(names)
        psql(self.url, "CHECKPOINT")
        show_progress("")
        return times

    def drop_indexes(self, names):
        """Drops the indexes of these tables that belong to no constraint. Returns their names and definitions."""
        listed = psql(self.url, f"""
            SELECT indexname, replace(indexdef, ' ON ONLY ', ' ON ') FROM pg_indexes
            WHERE schemaname = 'public' AND tablename = ANY ('{{{",".join(names)}}}')
              AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexname::regclass) ORDER BY tablename, indexname""")
        indexes = [line.split("|", 1) for line in listed.splitlines()]
        psql(self.url, "".join(f"DROP INDEX {name};" for name, _ in indexes))
        return indexes

    def copy(self, table, show_progress):
        """Generates and loads all rows of a table. Returns the duration in seconds."""
        columns = ", ".join(table.columns)
        select = f"SELECT {', '.join(table.columns.values())} FROM {table.numbers}".format(**self.values)
        # With wal_level=minimal, a table truncated in the same transaction is loaded without WAL.
        prepare = f"TRUNCATE {table.name} CASCADE"
        if table.name == "events":
            prepare = f"SELECT create_partition('events', now() - n * interval '1 month') FROM generate_series(0, {MONTHS + 1}) AS n"
        command = [str(BIN / "psql"), "-qX", "-v", "ON_ERROR_STOP=1", self.url]
        environment = {**os.environ, "PGOPTIONS": "-c session_replication_role=replica -c client_min_messages=warning"}
        started_at = time.monotonic()
        generator = subprocess.Popen([*command, "-c", self.functions, "-c", f"COPY ({select}) TO STDOUT"], stdout=subprocess.PIPE)
        steps = ["BEGIN", prepare, f"COPY {table.name} ({columns}) FROM STDIN", "COMMIT"]
        arguments = [part for step in steps for part in ("-c", step)]
        loader = subprocess.Popen([*command, *arguments], stdin=generator.stdout, stdout=subprocess.DEVNULL, env=environment)
        generator.stdout.close()
        expected = self.rows(table)
        while loader.poll() is None:
            try:
                loader.wait(2)
            except subprocess.TimeoutExpired:
                done = int(psql(self.url, "SELECT coalesce(sum(tuples_processed), 0) FROM pg_stat_progress_copy WHERE command = 'COPY FROM'"))
                show_progress(f"{table.name}: {done:,} of {expected:,} rows ({done / expected:.0%}), {done / (time.monotonic() - started_at):,.0f}/s")
        if generator.wait() or loader.returncode:
            raise SystemExit(f"{table.name} could not be loaded")
        return time.monotonic() - started_at

    def validate(self, names):
        """Fails if a table has the wrong number of rows, or if a row refers to a missing one."""
        for table in TABLES:
            # The commands that created tenants and clients have added events.
            count = int(psql(self.url, f"SELECT count(*) FROM {table.name}", options="-c max_parallel_workers_per_gather=2"))
            if not 0 <= count - self.rows(table) <= 4 * self.tenants:
                raise SystemExit(f"{table.name} has {count:,} rows instead of {self.rows(table):,}")
        keys = psql(self.url, f"""
            SELECT conname, format('SELECT count(*) FROM %s AS child WHERE NOT EXISTS (SELECT FROM %s AS parent WHERE %s)',
                conrelid::regclass, confrelid::regclass, string_agg(format('parent.%I = child.%I', there.attname, here.attname), ' AND '))
            FROM pg_constraint, unnest(conkey, confkey) AS pair (mine, its)
            JOIN pg_attribute AS here ON here.attnum = mine JOIN pg_attribute AS there ON there.attnum = its
            WHERE contype = 'f' AND conrelid = ANY ('{{{",".join(names)}}}'::regclass[])
              AND here.attrelid = conrelid AND there.attrelid = confrelid GROUP BY conname, conrelid, confrelid""")
        for name, query in (line.split("|", 1) for line in keys.splitlines()):
            if orphans := int(psql(self.url, query, options="-c work_mem=512MB")):
                raise SystemExit(f"{name}: {orphans} rows refer to a missing row")
