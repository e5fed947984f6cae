"""The measured endpoints: the SQL that each one runs, and its requests.

The SQL is read from the source, so pgbench runs the same statements as the service. A request is a template with placeholders.
The Lua script of wrk and the requests of the latency measurement are both generated from it.
"""

import json
import re
import typing

from harness import BIN, DATABASE, run
from load import sign
from statements import statement

# More than any catalog that the projects of one installation share has. Plans are not cached, so their number matters to
# PostgreSQL only.
PLANS = 1000
# Sessions whose tokens are refreshed; each refresh token is used once.
SESSIONS = 1000
# Users that sign in, with one subscription each that is past due. Each payment activates one; between rounds they are reset.
PAYERS = 60000
# The numbers of the first and last user whose entitlements are read: with one subscription that gives access, with fifty of
# which one does, and with fifty that all do. The last two groups are smaller: they have 100,000 subscriptions each.
USERS = {"one": (1, 60_000), "many": (60_001, 62_000), "rich": (62_001, 64_000)}
SUBSCRIPTIONS_PER_USER = 50


def make_small():
    """Makes all numbers small, for a run that only checks that every case runs."""
    global PLANS, SESSIONS, PAYERS, USERS
    PLANS, SESSIONS, PAYERS, USERS = 100, 200, 2000, {"one": (1, 2000), "many": (2001, 2020), "rich": (2021, 2040)}


class Case(typing.NamedTuple):
    """An endpoint."""

    name: str
    # The minimum ratio to the reference at 64 connections.
    target: float | None
    # The script of pgbench. None if the reference is the axum route.
    sql: str | None
    method: str
    # Templates: {} is a unique number, {name} is a line of the file with that name.
    path: str
    body: str | None = None
    # Whether requests have an Idempotency-Key.
    key: bool = False
    # SQL that resets the rows before each round.
    prepare: str | None = None
    # The value of the header client-id, if not that of the service.
    client_id: str | None = None
    # The number of sessions that a session check asks for.
    sessions: int | None = None


PARAMETER = re.compile(r"\$(\d+)")
# The subject of a user that signs in, as the built-in identity provider computes it.
SUBJECT = "translate(encode(sha256(('p' || number || '@example.com')::bytea), 'base64'), '+/=', '-_')"


def filled(sql, *values):
    """Replaces the parameters of a statement, which must be as many as the values."""
    parameters = {int(number) for number in PARAMETER.findall(sql)}
    if parameters != set(range(1, len(values) + 1)):
        raise SystemExit(f"{len(values)} values for {len(parameters)} parameters: {sql}")
    # In parentheses: the statement may cast the parameter, and the value may be an expression.
    return PARAMETER.sub(lambda match: f"({values[int(match[1]) - 1]})", sql) + ";\n"


def transaction(*statements):
    return "BEGIN;\n" + "".join(statements) + "COMMIT;\n"


# Makes all subscriptions past due, so that each payment activates one. In the managed tenant, their next period is open
# since yesterday, and each payment also posts to the ledger.
PAST_DUE = """
    UPDATE subscriptions SET status = 'past_due', late_since = now()
    WHERE status <> 'past_due' AND id IN (SELECT md5('s' || number)::uuid FROM generate_series(1, {payers}) AS number)
"""
OPEN_PERIODS = """
    UPDATE subscriptions SET status = 'past_due', renews_at = anchor, late_since = anchor, credit_minor = 0,
        due_at = anchor + interval '7 days', updated_at = anchor
    WHERE status <> 'past_due' AND tenant_id = '{managed}'
"""


def cases(tenant, plan, user, managed, client_id, sessions_checked):
    """Returns all cases. Reads come first, so that they are not slowed by dead rows of writes.

    `managed` is a tenant with a managed lifecycle, and `client_id` its client. `sessions_checked` are the numbers of sessions
    over which session checks are spread.
    """
    plans, subscriptions, users = "subscription_plans/table.rs", "subscriptions/table.rs", "users/table.rs"
    sessions, keys, payments = "auth/sessions/table.rs", "http/idempotency/table.rs", "subscription_payments/table.rs"
    ledger = "subscriptions/ledger/table.rs"
    past_due, open_periods = PAST_DUE.format(payers=PAYERS), OPEN_PERIODS.format(managed=managed)
    tenant, managed = f"'{tenant}'", f"'{managed}'"
    # Octal escapes: pgbench treats a colon as the start of a variable.
    issuer = r"E'urn\072perennial\072sandbox'"
    record = json.dumps({"id": "plan_" + "0" * 32, "slug": "plan-1", "name": "Plan 1", "price": 19.99, "description": "x" * 200})
    event_of = lambda tenant: filled(
        statement("events/table.rs", "INSERT"),
        tenant, "now()", "gen_random_uuid()", "'plan.created'", "gen_random_uuid()", "gen_random_uuid()", *["NULL"] * 2, "'req_bench'", *["NULL"] * 2, f"'{record}'", "NULL",
    )
    event = event_of(tenant)
    pick = lambda most, first=1: f"\\set number random({first}, {most})\n"
    none = ["NULL"] * 12

    slug = "'plan-' || :number"
    plan_of_row = [
        "'Plan'", "NULL", "'{}'", "1999", "'USD'", "NULL", "'monthly'", "0", "'For teams that ship every day.'", "25", "'SSO, Audit log'",
        "false", "(random() * 1000)::int", "true", "'{}'", "now()", "now()",
    ]
    add_plan = filled(statement(plans, "INSERT"), tenant, "gen_random_uuid()", "md5(random()::text)", *plan_of_row)
    lock_plan = filled(statement(plans, "LOCK"), tenant, slug).replace(";\n", " \\gset\n")
    save_plan = filled(statement(plans, "UPDATE"), tenant, ":id", slug, *plan_of_row)
    last = ["'9999-12-30'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid", "51"]

    entitlements = lambda group: pick(*USERS[group][::-1]) + filled(
        statement("entitlements/table.rs", "FIND"), tenant, "md5('u' || :number)::uuid", "now()")

    its_id, its_payer = "md5('s' || :number)::uuid", "md5('payer' || :number)::uuid"
    its_managed_id = "md5('m' || :number)::uuid"
    any_key = "\\set key random(1, 1000000000000)\n"
    its_key = "sha256(:key::text::bytea)"
    # The values of a subscription's columns; those of managed billing differ.
    subscription = lambda id, user, plan, external: [
        tenant, id, user, plan, "1999", "'USD'", "'monthly'", external, "'monthly'", "NULL", "1", "'active'", "false", "now()",
        "now() + interval '30 days'", "NULL", "now()", "NULL", "NULL", "NULL", "0", "0", *["NULL"] * 14, "'{}'", "now()", "now()", "NULL",
    ]
    managed_subscription = [
        managed, its_managed_id, "user_id", "plan_id", "1999", "'USD'", "'monthly'", "NULL", "'monthly'", "NULL", "1", "'active'", "false",
        "starts_at", "now() + interval '30 days'", "NULL", "anchor", "NULL", "NULL", "NULL", "0", "0", "now()", "now() + interval '30 days'",
        "'monthly'", "1999", "0", "0", *["NULL"] * 7, "managed_since", "metadata", "created_at", "now()", "now() + interval '30 days'",
    ]
    lock_subscription = filled(statement(subscriptions, "LOCK"), tenant, its_id)
    save_subscription = filled(
        statement(subscriptions, "UPDATE"), *subscription(its_id, "user_id", "plan_id", "md5(random()::text)"))
    # A payment and the period that it pays: two entries.
    two = lambda *values: f"ARRAY[{', '.join(values)}]"
    post = filled(
        statement(ledger, "INSERT"), two(managed, managed), two(its_managed_id, its_managed_id),
        two("clock_timestamp()", "clock_timestamp() + interval '1 microsecond'"), two("gen_random_uuid()", "gen_random_uuid()"),
        two("'payment'", "'period'"), two("'payment'", "'late_payment'"), two("'USD'", "'USD'"), two("1999", "-1999"), two("1999", "0"),
        two("gen_random_uuid()", "NULL"), two("NULL", "now()"), two("NULL", "now() + interval '30 days'"),
        two("gen_random_uuid()", "gen_random_uuid()"), two("1", "1"),
        two("gen_random_uuid()", "gen_random_uuid()"), two("NULL", "NULL"), two("'req_bench'", "'req_bench'"))

    def pay(tenant, id, change, period):
        """Returns the transaction of a payment that changes its subscription."""
        new = [tenant, "gen_random_uuid()", id, "1999", "'USD'", "NULL", "'completed'", "0", "now()", "NULL", *period, "0", "0", "'{}'", "now()", "now()"]
        return transaction(
            filled(statement(keys, "TRY_LOCK"), ":key"),
            filled(statement(keys, "FIND"), tenant, its_key, "now()"),
            filled(statement(subscriptions, "LOCK"), tenant, id),
            filled(statement(payments, "INSERT"), *new),
            event_of(tenant),
            change,
            event_of(tenant),
            filled(statement(keys, "STORE"), tenant, its_key, "sha256('x')", "'/subscription-payments/pay_x'", f"'{record}'", "now()",
                "now() + interval '1 day'"),
        )

    activate = filled(statement(subscriptions, "UPDATE"), *subscription(its_id, "user_id", "plan_id", "NULL"))
    charge = post + filled(statement(subscriptions, "UPDATE"), *managed_subscription)
    pay_recorded = pay(tenant, its_id, activate, ["NULL", "NULL", "NULL"])
    pay_managed = pay(managed, its_managed_id, charge, ["now()", "now() + interval '30 days'", "1999"])
    subscribe = transaction(
        filled(statement("users/lock_sql.rs", "LOCK_KEY_SHARE"), tenant, its_payer),
        filled(statement(plans, "LOCK_OFFER_KEY_SHARE"), tenant, f"'{plan}'"),
        filled(statement(subscriptions, "INSERT"), *subscription("gen_random_uuid()", its_payer, f"'{plan}'", "md5(random()::text)")),
        event,
    )
    # A sign-in looks the user up and creates a session. A refresh is one UPDATE.
    identity = filled(statement(users, "FIND_BY_IDENTITY"), tenant, issuer, SUBJECT.replace("number", ":number"))
    signed_in = "md5('payer' || :number)::uuid"
    sign_in = pick(PAYERS) + identity + transaction(
        filled(
            statement(sessions, "INSERT"), tenant, "gen_random_uuid()", signed_in, "gen_random_uuid()", issuer, "'127.0.0.1'",
            "'wrk'", "'0123456789abcdef'", "0", "0", "now()", "now()", "now()", "now() + interval '14 days'", "NULL", "0"),
        event,
        filled(statement("auth/sessions/user_sessions_sql.rs", "LIST_EXCESS"), tenant, signed_in, "now()", "1209600", "2592000", "100"))
    # Otherwise users reach their largest number of sessions, and each sign-in ends another session.
    end_sessions = f"DELETE FROM sessions WHERE user_id <> '{user.user}'"
    rotate = filled(
        statement("auth/sessions/refresh_sql.rs", "ROTATE"), tenant, "md5(:number::text)::uuid", "client_id", "salt", "generation", "now()",
        "now() + interval '14 days'", "2592000", "refresh_key_id", "refresh_key_id", "''::bytea", "1209600")

    new_plan = '{"name": "Plan", "slug": "{}", "price": 19.99, "billing_cycle": "monthly", "description": "For teams that ship every day.", "features": "SSO, Audit log", "node_quota": 25}'
    return [
        *(Case(f"session check, {count:,} session{'s' * (count > 1)}", 0.8 if count == 1 else None, None, "POST",
            "/authentication/user-logged-in", sessions=count) for count in sessions_checked),
        Case("entitlements", 0.6, entitlements("one"), "GET", "/entitlements/{one}"),
        Case(f"entitlements, 1 of {SUBSCRIPTIONS_PER_USER}", None, entitlements("many"), "GET", "/entitlements/{many}"),
        Case(f"entitlements, all {SUBSCRIPTIONS_PER_USER}", None, entitlements("rich"), "GET", "/entitlements/{rich}"),
        Case("plan by slug", 0.6, pick(PLANS) + filled(statement(plans, "FIND"), tenant, slug), "GET", "/subscription-plans/{slugs}"),
        Case("plan list", None, filled(statement("subscription_plans/plan_list_sql.rs", "BY_AGE.newest_first"), tenant, *last, *none[:3]), "GET", "/subscription-plans?sort=-created_at"),
        Case("subscription by id", 0.6, pick(PAYERS) + filled(statement(subscriptions, "FIND"), tenant, its_id), "GET", "/subscriptions/{payers}"),
        Case("subscription page", None, filled(statement("subscriptions/list_sql.rs", "ALL.newest_first"), tenant, *last, "'1970-01-01'::timestamptz", "'9999-01-01'::timestamptz"), "GET", "/subscriptions?sort=-created_at"),
        Case("payment create", 0.8, pick(PAYERS) + any_key + pay_recorded, "POST", "/subscription-payments",
             '{"subscription_id": "{payers}", "amount": 19.99, "currency": "USD", "status": "completed"}', key=True, prepare=past_due),
        Case("payment create, managed", 0.8, pick(PAYERS) + any_key + pay_managed, "POST", "/subscription-payments",
             '{"subscription_id": "{managed}", "amount": 19.99, "currency": "USD", "status": "completed"}', key=True, prepare=open_periods,
             client_id=client_id),
        Case("subscription create", 0.8, pick(PAYERS) + subscribe, "POST", "/subscriptions",
             '{"user_id": "{their_users}", "subscription_plan_id": "plan_%s", "external_subscription_id": "{}"}' % plan),
        Case("subscription update", 0.8, pick(PAYERS) + transaction(lock_subscription, save_subscription, event), "PUT", "/subscriptions/{payers}",
             '{"external_subscription_id": "{}"}'),
        Case("plan create", 0.8, transaction(add_plan, event), "POST", "/subscription-plans", new_plan),
        Case("plan update", 0.8, pick(PLANS) + transaction(lock_plan, save_plan, event), "PUT", "/subscription-plans/{slugs}", '{"product_id": "{}"}'),
        Case("sign-in", 0.8, sign_in, "POST", "/authentication/sign-in", "{credentials}", prepare=end_sessions),
        Case("refresh", 0.8, pick(SESSIONS) + rotate, "POST", "/authentication/refresh-token", '{"refresh_token": "{tokens}"}'),
    ]


def psql(sql):
    return run(str(BIN / "psql"), "-qAtX", DATABASE, "-c", sql)


def fill(binary, service, user):
    """Creates the rows that the cases use and files with their ids. Returns the tenant's id, the managed tenant's id, and the
    value of its client's header."""
    tenant = psql("SELECT tenant_id FROM tenants").strip()
    psql(f"""
        INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, user_agent, salt, generation,
            confirmed_generation, refreshed_at, created_at, last_used_at, expires_at, number, refresh_key_id)
        SELECT tenant_id, md5(nth::text)::uuid, user_id, client_id, issuer, address, user_agent, salt,
            0, 0, now(), now(), now(), now() + interval '14 days', number, refresh_key_id
        FROM (SELECT * FROM sessions JOIN (SELECT tenant_id, id AS user_id FROM users WHERE email = 'ada@example.com') AS ada
            USING (tenant_id, user_id) LIMIT 1) AS one, generate_series(1, {SESSIONS}) AS nth""")
    # One subscription per user.
    psql(f"""
        INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at) SELECT tenant_id, md5('payer' || number)::uuid, 'p' || number || '@example.com', 'p' || number || '@example.com', now(), now()
        FROM tenants, generate_series(1, {PAYERS}) AS number;
        -- Otherwise each foreign key check scans all users.
        ANALYZE users;
        INSERT INTO identities (tenant_id, issuer, subject, user_id, created_at)
        SELECT tenant_id, 'urn:perennial:sandbox', {SUBJECT}, md5('payer' || number)::uuid, now()
        FROM tenants, generate_series(1, {PAYERS}) AS number;
        INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, billing_cycle, status,
            suspended, starts_at, renews_at, anchor, late_since, due_at, created_at, updated_at)
        SELECT plan.tenant_id, md5('s' || number)::uuid, md5('payer' || number)::uuid, plan.id, 1999, 'USD', 'monthly', 'monthly', 'past_due', false,
            now(), now() + interval '30 days', now(), now(), 'infinity', now(), now()
        FROM (SELECT * FROM subscription_plans LIMIT 1) AS plan, generate_series(1, {PAYERS}) AS number;
        ANALYZE subscriptions""")
    (_, last_of_one), (first_of_rich, last) = USERS["one"], USERS["rich"]
    psql(f"""
        INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at) SELECT tenant_id, md5('u' || number)::uuid, number || '@example.com', number || '@example.com', now(), now()
        FROM tenants, generate_series(1, {last}) AS number;
        ANALYZE users;
        INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, billing_cycle, status,
            suspended, starts_at, renews_at, ends_at, anchor, due_at, created_at, updated_at)
        SELECT plan.tenant_id, md5('e' || number || '.' || nth)::uuid, md5('u' || number)::uuid, plan.id, 1999, 'USD', 'monthly', 'monthly',
            CASE WHEN gives THEN 'active' ELSE 'expired' END, false, now() - nth * interval '30 days', now() + interval '30 days',
            CASE WHEN gives THEN NULL ELSE now() - (nth - 1) * interval '30 days' END, now(), 'infinity', now() - nth * interval '30 days', now()
        FROM (SELECT * FROM subscription_plans LIMIT 1) AS plan, generate_series(1, {last}) AS number,
            generate_series(1, {SUBSCRIPTIONS_PER_USER}) AS nth, LATERAL (SELECT nth = 1 OR number >= {first_of_rich} AS gives) AS whether
        WHERE nth = 1 OR number > {last_of_one};""")
    managed, client_id = fill_managed(service)
    psql("VACUUM ANALYZE")
    series = lambda name, most, first=1: psql(f"SELECT {name} FROM generate_series({first}, {most}) AS number")
    names = {
        **{group: series("'usr_' || md5('u' || number)", last, first) for group, (first, last) in USERS.items()},
        "slugs": series("'plan-' || number", PLANS),
        "payers": series("'sub_' || md5('s' || number)", PAYERS),
        "managed": series("'sub_' || md5('m' || number)", PAYERS),
        "their_users": series("'usr_' || md5('payer' || number)", PAYERS),
    }
    for name, text in names.items():
        (service.folder / name).write_text(text)
    emails = [f"p{number}@example.com" for number in range(1, PAYERS + 1)]
    subjects = series(f"{SUBJECT} || ' p' || number || '@example.com'", PAYERS)
    tokens = sign(binary.parent, service, "sandbox", json.loads(user.credentials)["access_token"], ["sub", "email"], subjects)
    credentials = ({"access_token": token, "email": email} for token, email in zip(tokens, emails))
    (service.folder / "credentials").write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in credentials))
    return tenant, managed, client_id


def fill_managed(service):
    """Creates a managed tenant whose subscriptions have been past due since yesterday. Returns its id and the value of its
    client's header."""
    service.command("tenant", "create", "--name", "managed")
    service.command("tenant", "set", "--tenant", "managed", "--lifecycle", "managed")
    client = json.loads(service.command("client", "create", "--tenant", "managed", "--json"))
    psql(f"""
        INSERT INTO users (tenant_id, id, email, email_key, created_at, updated_at) SELECT tenant_id, md5('managed' || number)::uuid, 'm' || number || '@example.com', 'm' || number || '@example.com', now(), now()
        FROM tenants, generate_series(1, {PAYERS}) AS number WHERE name = 'managed';
        INSERT INTO subscription_plans (tenant_id, id, slug, name, price_minor, currency, billing_cycle, variants, node_quota, most_popular,
            tier, is_active, created_at, updated_at)
        SELECT tenant_id, md5('managed')::uuid, 'managed', 'Plan', 1999, 'USD', 'monthly', '{{}}', 0, false, 0, true, now(), now()
        FROM tenants WHERE name = 'managed';
        INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, billing_cycle, status,
            suspended, starts_at, renews_at, anchor, late_since, managed_since, due_at, created_at, updated_at)
        SELECT tenant_id, md5('m' || number)::uuid, md5('managed' || number)::uuid, md5('managed')::uuid, 1999, 'USD', 'monthly', 'monthly',
            'past_due', false, due - interval '1 month', due, due, due, lifecycle_since, due + interval '7 days', due - interval '1 month', due
        FROM (SELECT *, now() - interval '1 day' AS due FROM tenants WHERE name = 'managed') AS tenant, generate_series(1, {PAYERS}) AS number""")
    return psql("SELECT tenant_id FROM tenants WHERE name = 'managed'").strip(), client["client_id"]
