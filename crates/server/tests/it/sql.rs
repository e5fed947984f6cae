//! Every SQL statement is prepared against the migrated schema, filters by tenant, and uses an index.

use crate::{
    architecture::{crate_path, rust_files},
    harness::{database::Database, env_number},
    sql_source::statements,
};

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let database = Database::create().await;
    let client = database.connect().await;
    let mut count = 0;
    for path in rust_files(&crate_path("src")) {
        for statement in statements(&path) {
            count += 1;
            if let Err(error) = client.prepare(&statement).await {
                panic!("{}: {statement}\n{error:?}", path.display());
            }
            assert!(
                !statement.to_lowercase().contains("select *"),
                "{statement}"
            );
        }
    }
    assert!(count >= 20, "only {count} statements were found");
}

/// By a condition on the tenant, or by the tenant of the inserted row.
#[tokio::test]
async fn every_statement_filters_by_tenant() {
    let database = Database::create().await;
    let rows = database
        .connect()
        .await
        .query(
            "SELECT table_name FROM information_schema.columns
             WHERE column_name = 'tenant_id' AND table_schema = 'public' AND table_name <> 'tenants'",
            &[],
        )
        .await
        .unwrap();
    let tables: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(tables.len() >= 4, "{tables:?}");
    // Lookups that find the tenant, and housekeeping for all tenants.
    let exceptions = [
        "allowed_origins @> ARRAY[$1]",
        "WHERE client_values.value_hash = $1",
        "DELETE FROM client_values",
        // Staff members belong to one tenant or to all. A session, a link and a member's id find the tenant.
        "staff_sessions.token_hash = $1",
        "staff_sessions SET",
        "DELETE FROM staff_sessions",
        "FROM staff_members WHERE id = $1",
        "FROM staff_members WHERE removed_at IS NULL",
        "tenant_id IS NOT DISTINCT FROM $1",
        "INSERT INTO staff_members (id, tenant_id,",
        "UPDATE staff_members SET",
        "DELETE FROM idempotency_keys WHERE ctid",
        "DELETE FROM sessions\n",
        "DELETE FROM session_watermarks\n",
        "FROM session_watermarks WHERE cleaned_at IS NULL LIMIT 1",
        // The sequencer of the event log numbers the events of all tenants.
        "FROM events WHERE seq > $2",
        "FROM events WHERE seq > copied_to_seq",
        "max(seq) FROM events",
        "EXISTS (SELECT FROM event_log_tenants)",
        "FROM event_log_tenants AS head\n",
        // Housekeeping and metrics of webhooks for all tenants.
        "DELETE FROM webhook_retries WHERE ctid",
        "FROM webhook_endpoints AS endpoint JOIN event_log_tenants AS log",
        // The cache of all payment accounts, and housekeeping for all tenants.
        "FROM payment_accounts AS account\n",
        "DELETE FROM payment_event_ids WHERE ctid",
        "(SELECT count(*) FROM payment_objects WHERE waits_for IS NOT NULL)",
        "ANALYZE users, subscriptions",
        // The relay publishes the events of all tenants.
        "FROM event_log_tenants AS log\n",
        // The roll-up of the reports of all tenants.
        "FROM pending_revenue_changes WHERE at <= $1",
        "LOCK TABLE events_default",
        // Partitions have the rows of all tenants.
        "SELECT create_partitions('",
        "SELECT drop_partitions('",
        // The removal of old events of all tenants.
        "FROM all_pending_revenue_changes
     WHERE at < partitions_kept_from('events'",
        "DELETE FROM payment_changes AS change",
        "JOIN revenue_changes AS change ON change.tenant_id = claimed.tenant_id",
        // The lifecycle task for all tenants.
        "WHERE tenant_id = tenant.id",
    ];
    for path in rust_files(&crate_path("src")) {
        for statement in statements(&path) {
            let words: Vec<&str> = statement
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            let touches = tables.iter().any(|table| words.contains(&table.as_str()));
            let excepted = exceptions
                .iter()
                .any(|exception| statement.contains(exception));
            let one_tenant = ["tenant_id = $1", "(tenant_id,", "tenant_id = ANY ($1)"]
                .iter()
                .any(|named| statement.contains(named));
            assert!(
                !touches || excepted || one_tenant,
                "{}: {statement}",
                path.display()
            );
        }
    }
}

/// Inserts rows of several tenants into each table that can become large: 250,000 subscriptions in two years, whose lists have
/// limits for the pages read, and 100,000 rows of other tables, which are enough to make a sequential scan expensive. `ROWS` sets
/// the number of subscriptions; `just prove query-plans` uses 10 million.
const MANY_ROWS: &str = "
    INSERT INTO tenants (tenant_id, name, cell, default_currency, created_at)
    SELECT md5(n::text)::uuid, 't' || n, 'home', 'USD', now() FROM generate_series(1, 1000) AS n;
    INSERT INTO clients (tenant_id, id, kind, name, scopes, allow_addresses, allowed_origins, created_at)
    SELECT md5((n % 1000 + 1)::text)::uuid, md5('c' || n)::uuid, CASE n % 2 WHEN 0 THEN 'secret' ELSE 'publishable' END,
        'c', '{}', '{}', CASE n % 2 WHEN 0 THEN '{}' ELSE ARRAY['https://a' || n || '.example'] END, now()
    FROM generate_series(1, 100000) AS n;
    INSERT INTO client_values (tenant_id, client_id, value_hash, created_at, expires_at)
    SELECT tenant_id, id, sha256(id::text::bytea), now(), CASE WHEN random() < 0.5 THEN now() END FROM clients;
    INSERT INTO identity_providers (tenant_id, id, issuer, audiences, verify, accept_id_tokens, accept_bound_tokens, accept_azp,
        is_guarded, created_at)
    SELECT md5((n % 1000 + 1)::text)::uuid, gen_random_uuid(), 'https://i' || n || '.example', '{a}', 'jwt', false, false, false,
        false, now()
    FROM generate_series(1, 100000) AS n;
    INSERT INTO idempotency_keys (tenant_id, scope_hash, fingerprint, location, body, created_at, expires_at)
    SELECT md5((n % 10)::text)::uuid, sha256(n::text::bytea), sha256('x'), '/x', '{}', now(), now() + n * interval '1 second'
    FROM generate_series(1, 100000) AS n;
    INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
    SELECT md5((n % 10)::text)::uuid, now(), md5('e' || n)::uuid, 'x', md5('s' || n / 5)::uuid, '{}'
    FROM generate_series(1, 100000) AS n;
    INSERT INTO event_log (tenant_id, position, recorded_at, at, event_id, kind, subject_id)
    SELECT tenant_id, seq, at, at, id, kind, subject_id FROM events;
    INSERT INTO event_log_tenants (tenant_id, last_position) SELECT tenant_id, max(seq) FROM events GROUP BY tenant_id;
    INSERT INTO users (tenant_id, id, external_id, email, email_key, created_at, updated_at)
    SELECT md5((n % 10)::text)::uuid, md5('u' || n)::uuid, 'customer-' || n, n || '@example.com', n || '@example.com',
        timestamptz '2024-01-01' + n * interval '10 minutes', now()
    FROM generate_series(1, 100000) AS n;
    INSERT INTO identities (tenant_id, issuer, subject, user_id, created_at)
    SELECT tenant_id, 'https://i.example', id::text, id, created_at FROM users;
    INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, salt, generation, confirmed_generation,
        refreshed_at, created_at, last_used_at, expires_at, number, refresh_key_id)
    SELECT tenant_id, gen_random_uuid(), id, id, 'https://i.example', '192.0.2.1', '0123456789abcdef', 0, 0,
        now(), now(), now(), now(), nextval('session_numbers'), 0 FROM users;
    INSERT INTO session_watermarks (tenant_id, scope, sessions_valid_from, reason, set_at, cleaned_at)
    SELECT tenant_id, 'user:' || id, 0, 'revoke_all', now(), now() FROM users;
    INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
        node_quota, most_popular, tier, is_active, created_at, updated_at)
    SELECT md5((n % 10)::text)::uuid, gen_random_uuid(), 'p' || n, 'P', '{}', 1999, 'USD', 'monthly',
        0, false, n % 1000, n % 7 <> 0, timestamptz '2020-01-01' + n * interval '1 minute', now()
    FROM generate_series(1, 100000) AS n;
    INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id,
        billing_cycle, status, suspended, starts_at, renews_at, ends_at, anchor, due_at, created_at, updated_at)
    SELECT md5((n % 10)::text)::uuid, md5('s' || n)::uuid, md5('u' || n / 2)::uuid, md5('p' || n % 1000)::uuid, 1999, 'USD',
        'monthly', CASE WHEN n % 3 = 0 THEN 'ext_' || n END, CASE WHEN n % 5000 = 40 THEN 'daily' ELSE 'monthly' END,
        CASE WHEN n % 5000 = 0 THEN 'paused' WHEN n % 5000 = 10 THEN 'expired' ELSE 'active' END, n % 7000 = 20,
        began, began + interval '30 days', CASE WHEN n % 5000 = 10 OR n % 6000 = 30 THEN began + interval '20 days' END,
        began, began + interval '30 days', began, began
    FROM generate_series(1, :rows) AS n,
        LATERAL (SELECT timestamptz '2024-01-01' + n * interval '1 minute' * (1000000.0 / :rows) AS began) AS times;
    INSERT INTO subscription_payments (tenant_id, id, subscription_id, amount_minor, currency, external_id, status,
        refunded_minor, paid_at, created_at, updated_at)
    SELECT tenant_id, md5('pay' || id)::uuid, id, 1999, CASE WHEN id::text LIKE '01%' THEN 'EUR' ELSE 'USD' END, external_id,
        CASE WHEN id::text LIKE '00%' THEN 'failed' ELSE 'completed' END, 0, created_at, created_at, created_at
    FROM subscriptions LIMIT 100000;
    INSERT INTO ledger_entries (tenant_id, subscription_id, created_at, id, type, cause, currency, amount_minor,
        credit_after_minor, plan_id, quantity)
    SELECT tenant_id, id, created_at, md5('led' || id)::uuid, 'payment', 'payment', 'USD', 1999, 1999, plan_id, 1
    FROM subscriptions LIMIT 100000;
    INSERT INTO subscription_cancellations (tenant_id, subscription_id, status, cancelled_until)
    SELECT tenant_id, id, 'active', created_at FROM subscriptions LIMIT 100000;
    INSERT INTO event_relay_positions (tenant_id, stream, stream_id, position, saved_at)
    SELECT tenant_id, 'perennial', 'x', 0, now() FROM event_log_tenants;
    INSERT INTO webhook_endpoints (tenant_id, id, url, event_types, delivery_order, status, secret, created_at, updated_at,
        position, failing_since, due_at, lease_holder, leased_until)
    SELECT md5((n % 1000 + 1)::text)::uuid, md5('w' || n)::uuid, 'https://a.example', '{}', 'none',
        CASE WHEN n % 10 = 0 THEN 'disabled' ELSE 'enabled' END, '', now() + n * interval '1 second', now(), 1000000,
        CASE WHEN n % 20 = 1 THEN now() END, CASE WHEN n % 20 = 1 THEN now() + n * interval '1 second' END,
        CASE WHEN n % 20 = 2 THEN md5('holder')::uuid END, CASE WHEN n % 20 = 2 THEN now() + interval '15 seconds' END
    FROM generate_series(1, 100000) AS n;
    INSERT INTO webhook_retries (tenant_id, endpoint_id, position, subject_id, failed_attempts, since, next_attempt_at,
        given_up_at)
    SELECT tenant_id, id, n, md5('s' || n)::uuid, 1, now(), CASE WHEN n % 2 = 0 THEN now() END,
        CASE WHEN n % 10 = 1 THEN now() END
    FROM webhook_endpoints, generate_series(1, 50) AS n WHERE failing_since IS NOT NULL LIMIT 100000;
    INSERT INTO webhook_replays (tenant_id, endpoint_id, id, position, last_position, event_types, only_failed, created_at,
        finished_at)
    SELECT tenant_id, id, md5('r' || id)::uuid, 0, 1, '{}', false, now(), CASE WHEN failing_since IS NULL THEN now() END
    FROM webhook_endpoints;
    INSERT INTO webhook_attempts (tenant_id, endpoint_id, created_at, id, event_id, kind, attempt, is_success, duration_ms)
    SELECT tenant_id, id, now(), md5('a' || id)::uuid, id, 'x', 1, true, 5 FROM webhook_endpoints;
    INSERT INTO payment_accounts (tenant_id, id, provider, mode, created_at, updated_at)
    SELECT md5((n % 1000 + 1)::text)::uuid, md5('pac' || n)::uuid, 'stripe', 'test', now() + n * interval '1 second', now()
    FROM generate_series(1, 2000) AS n;
    INSERT INTO payment_account_secrets (tenant_id, account_id, id, secret, created_at)
    SELECT tenant_id, id, id, '', now() FROM payment_accounts;
    INSERT INTO payment_objects (tenant_id, account_id, kind, external_id, record_id, wanted, created_at, updated_at,
        dirty_since, due_at, reason, waits_for, waits_for_ids)
    SELECT md5((n % 10)::text)::uuid, md5('pac' || n % 10)::uuid, 'subscription', 'sub_' || n, md5('s' || n)::uuid, 1, now(),
        now(), CASE WHEN n % 1000 < 2 THEN now() END, CASE WHEN n % 1000 < 2 THEN now() END,
        CASE WHEN n % 1000 IN (1, 2) THEN 'x' END, CASE WHEN n % 1000 = 1 THEN 'plan' END,
        CASE WHEN n % 1000 = 1 THEN '{price_1}'::text[] END
    FROM generate_series(1, 100000) AS n;
    INSERT INTO payment_commands (tenant_id, account_id, external_id, command, next_attempt_at, acknowledged_at, created_at)
    SELECT md5((n % 10)::text)::uuid, md5('pac' || n % 10)::uuid, 'sub_' || n, 'cancel', CASE WHEN n % 1000 = 0 THEN now() END,
        CASE WHEN n % 1000 = 0 THEN NULL ELSE now() END, now()
    FROM generate_series(1, 100000) AS n;
    INSERT INTO payment_event_ids (tenant_id, account_id, event_id, notification_id, created_at)
    SELECT md5((n % 10)::text)::uuid, md5('pac' || n % 10)::uuid, 'evt_' || n, md5('pnt' || n)::uuid, now() + n * interval '1 second'
    FROM generate_series(1, 100000) AS n;
    INSERT INTO payment_notifications (tenant_id, created_at, id, account_id, event_id, event_type, object_kind, object_id,
        state, body)
    SELECT md5((n % 10)::text)::uuid, date_trunc('month', now()) + n * interval '1 second', md5('pnt' || n)::uuid,
        md5('pac' || n % 20)::uuid, 'evt_' || n, CASE WHEN n % 5000 = 0 THEN 'invoice.paid' ELSE 'x' END, 'subscription',
        'sub_' || n / 5, CASE WHEN n % 5000 = 10 THEN 'failed' ELSE 'done' END, ''
    FROM generate_series(1, 100000) AS n;
    INSERT INTO revenue_changes (tenant_id, user_id, seq, at, subscription_id, plan_id, billing_cycle, currency, status, basis,
        suspended, imported, arr_minor)
    SELECT md5((n % 10)::text)::uuid, md5('user' || n / 2)::uuid, n, now() + n * interval '1 second', md5('sub' || n)::uuid,
        md5('plan' || n % 5)::uuid, 'monthly', 'USD', 'active', 'recurring', false, false, 12000
    FROM generate_series(1, 100000) AS n;
    INSERT INTO pending_revenue_changes (tenant_id, user_id, at, subscription_id, plan_id, billing_cycle, currency, status,
        basis, suspended, imported, arr_minor)
    SELECT tenant_id, user_id, at, subscription_id, plan_id, billing_cycle, currency, status, basis, suspended, imported,
        arr_minor
    FROM revenue_changes;
    INSERT INTO revenue_movements (tenant_id, generation, span, plan_id, billing_cycle, currency, day, kind, users, changes,
        subscriptions, arr_minor)
    SELECT md5((n % 10)::text)::uuid, 0, CASE WHEN n % 30 = 0 THEN 'month' ELSE 'day' END, md5('plan' || n % 7)::uuid, 'monthly', 'USD', date '2020-01-01' + n / 70, 'new', 1, 1, 1, 1
    FROM generate_series(1, 100000) AS n;
    INSERT INTO revenue_statuses (tenant_id, generation, span, plan_id, billing_cycle, currency, day, status, basis, suspended,
        subscriptions, arr_minor)
    SELECT md5((n % 10)::text)::uuid, 0, CASE WHEN n % 30 = 0 THEN 'month' ELSE 'day' END, md5('plan' || n % 7)::uuid, 'monthly', 'USD', date '2020-01-01' + n / 70, 'active',
        'recurring', false, 1, 1
    FROM generate_series(1, 100000) AS n;
    INSERT INTO revenue_outcomes (tenant_id, generation, span, plan_id, billing_cycle, currency, day, started_month, kind,
        subscriptions, arr_minor)
    SELECT md5((n % 10)::text)::uuid, 0, CASE WHEN n % 30 = 0 THEN 'month' ELSE 'day' END, md5('plan' || n % 7)::uuid, 'monthly', 'USD', date '2020-01-01' + n / 70, '2020-01-01',
        'trial_started', 1, 1
    FROM generate_series(1, 100000) AS n;
    INSERT INTO revenue_cohorts (tenant_id, generation, currency, cohort_month, month, joined, users, arr_minor)
    SELECT md5((n % 1000)::text)::uuid, 0, 'USD', date '2020-01-01', date '2020-01-01' + n / 1000, 1, 1, 1
    FROM generate_series(1, 100000) AS n;
    INSERT INTO payments_daily (tenant_id, generation, currency, day, kind, payments, amount_minor)
    SELECT md5((n % 10)::text)::uuid, 0, 'USD', date '2020-01-01' + n / 10, 'collected', 1, 1
    FROM generate_series(1, 100000) AS n";

/// Inserts the rows without triggers and indexes, and rebuilds the indexes afterwards, which is several
/// times faster.
async fn insert_many_rows(client: &tokio_postgres::Client) {
    let tables = "FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'";
    let prepare = format!(
        "SET session_replication_role = replica; SET synchronous_commit = off;
         SET maintenance_work_mem = '256MB';
         UPDATE pg_index SET indisready = false WHERE indrelid IN (SELECT oid {tables})"
    );
    client.batch_execute(&prepare).await.unwrap();
    let rows = env_number("ROWS").unwrap_or(250_000_u32);
    let insert = MANY_ROWS.replace(":rows", &rows.to_string());
    client.batch_execute(&insert).await.unwrap();
    let names = format!("SELECT oid::regclass::text {tables}");
    for row in client.query(&names, &[]).await.unwrap() {
        let reindex = format!("REINDEX TABLE {}", row.get::<_, &str>(0));
        client.batch_execute(&reindex).await.unwrap();
    }
    client.batch_execute("ANALYZE").await.unwrap();
}

/// Tables that stay small. Others must not be scanned sequentially.
const SMALL_TABLES: &[&str] = &[
    "instance",
    "tenants",
    "task_leases",
    "event_log_months",
    "event_log_state",
    "event_log_tenants",
    "event_relay_positions",
    "payment_accounts",
    "payment_account_secrets",
    "payment_list_positions",
    // A queue that is usually empty.
    "payment_changes",
    "report_installation",
    "report_state",
    "signing_keys",
    "staff_links",
    "staff_members",
    "staff_sessions",
    "pg_authid",
    "pg_class",
];

/// Returns whether a line of a plan is the sequential scan of a table that can become large. Of each partitioned table, only
/// the partition in `filled` has rows.
fn scans_large_table(line: &str, filled: &[String]) -> bool {
    let Some(scanned) = line.split("Seq Scan on ").nth(1) else {
        return false;
    };
    let table = scanned.split(' ').next().unwrap();
    let is_partition = ["events_", "webhook_attempts_", "payment_notifications_"]
        .iter()
        .any(|name| table.starts_with(name));
    let is_empty = is_partition && filled.iter().all(|filled| table != filled);
    !is_empty && !SMALL_TABLES.contains(&table)
}

/// With many rows, every statement uses an index, and lists need no sort.
#[tokio::test]
async fn statements_use_indexes() {
    let database = Database::create().await;
    let client = database.connect().await;
    insert_many_rows(&client).await;
    let generic = "SET plan_cache_mode = force_generic_plan";
    client.batch_execute(generic).await.unwrap();
    let filled = filled_partitions(&client).await;
    let is_large = std::env::var("ROWS").is_ok();
    let (mut explained, mut due) = (0, 0);
    for path in rust_files(&crate_path("src")) {
        for sql in statements(&path) {
            let verb = sql.split_whitespace().next().unwrap();
            if !["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&verb) {
                continue;
            }
            // Planned with its values; see `assert_filters_use_indexes`.
            if FILTERED_LISTS.iter().any(|list| list.is_statement(&sql)) {
                continue;
            }
            // The switch to managed billing reads a whole tenant once, which may be a tenth of a large table.
            if is_large && path.ends_with("commands/tenant/subscriptions_sql.rs") {
                continue;
            }
            // A database that was copied from another cluster is read as a whole once.
            if path.ends_with("events/log/copied_events_sql.rs")
                || path.ends_with("reports/copied_states_sql.rs")
            {
                continue;
            }
            // The rebuild and the check of reports, and the removal of events, read all pending states, which are few.
            if sql.contains("FROM all_pending_revenue_changes") {
                continue;
            }
            // Reads all endpoints, each ten seconds; see `webhooks::claims`.
            if sql.contains("AND position < last_position") && !sql.contains("ANY ($4)") {
                continue;
            }
            explained += 1;
            let parameters = (1..100)
                .take_while(|n| sql.contains(&format!("${n}")))
                .count();
            let values = vec!["NULL"; parameters].join(", ");
            let values = if values.is_empty() {
                values
            } else {
                format!("({values})")
            };
            let explain = format!("PREPARE s AS {sql}; EXPLAIN EXECUTE s{values}; DEALLOCATE s");
            let lines = client.simple_query(&explain).await.unwrap();
            let plan: Vec<String> = lines
                .iter()
                .filter_map(|line| match line {
                    tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                    _ => None,
                })
                .collect();
            assert!(
                !plan.iter().any(|line| scans_large_table(line, &filled)),
                "{}: {sql}\n{}",
                path.display(),
                plan.join("\n")
            );
            let list = [
                "FROM subscription_plans",
                "FROM subscriptions\n",
                "FROM subscription_payments\n",
                "FROM ledger_entries",
                "FROM users\n",
            ]
            .iter()
            .any(|from| sql.contains(from))
                && sql.contains("LIMIT $");
            if sql.contains("SKIP LOCKED") && list {
                // Both arms of the union read their index in order of the due date.
                for index in ["subscriptions_ending", "subscriptions_due_at"] {
                    let used = plan.iter().any(|line| line.contains(index));
                    assert!(used, "{index}\n{}", plan.join("\n"));
                }
                let sorted = plan
                    .iter()
                    .any(|line| line.contains("Sort Key: subscriptions."));
                assert!(!sorted, "{}", plan.join("\n"));
                continue;
            }
            // What is due is found in order of its due date, without reading what is not.
            if sql.contains("due_at <= $1") {
                let reads_index = plan
                    .iter()
                    .any(|line| line.contains("subscriptions_due_at"));
                assert!(reads_index, "{sql}\n{}", plan.join("\n"));
                due += 1;
                continue;
            }
            // A WITH query may sort its combined result.
            let list = list && verb == "SELECT";
            let plan = plan.join("\n");
            assert!(!list || !plan.contains("Sort"), "{sql}\n{plan}");
            // A filter is an index condition, not a filter on the rows that the index returns.
            for column in ["user_id", "plan_id", "status", "billing_cycle", "currency"] {
                let filtered = list
                    && [" = $", ", created_at, id) "]
                        .iter()
                        .any(|condition| sql.contains(&format!("{column}{condition}")));
                let indexed = plan
                    .lines()
                    .any(|line| line.contains("Index Cond") && line.contains(column));
                assert!(!filtered || indexed, "{column}: {sql}\n{plan}");
            }
        }
    }
    assert!(
        explained >= 20,
        "only {explained} statements were explained"
    );
    assert_eq!(
        due, 2,
        "statements that find due subscriptions, besides the claim"
    );
    // The limits of pages read are for the default number of rows.
    if !is_large {
        assert_rare_values_use_indexes(&client).await;
        assert_filters_use_indexes(&client).await;
        assert_prefixes_use_index(&client).await;
    }
}

/// Returns the partitions that [`MANY_ROWS`] fills: those of today.
async fn filled_partitions(client: &tokio_postgres::Client) -> Vec<String> {
    let partitions = "SELECT ARRAY[to_char(now() AT TIME ZONE 'UTC', '\"events_\"YYYY_MM'),
        to_char(now() AT TIME ZONE 'UTC', '\"webhook_attempts_\"YYYY_MM_DD'),
        to_char(now() AT TIME ZONE 'UTC', '\"payment_notifications_\"YYYY_MM')]";
    client.query_one(partitions, &[]).await.unwrap().get(0)
}

/// A list whose statement is planned with its values.
struct FilteredList {
    /// A part of its statements that no other has.
    mark: &'static str,
    file: &'static str,
    /// The number of its statements: each order in both directions.
    statements: usize,
    /// The values of all parameters after the limit that are not null.
    fixed: &'static [(usize, &'static str)],
    /// The number of a parameter, and its value.
    filters: &'static [(usize, &'static str)],
}

impl FilteredList {
    fn is_statement(&self, sql: &str) -> bool {
        sql.contains(self.mark)
    }
}

const FILTERED_LISTS: &[FilteredList] = &[
    FilteredList {
        mark: "$20::boolean",
        file: "src/subscriptions/list_sql.rs",
        statements: 6,
        fixed: &[(8, "'2025-11-20 00:00:00+00'")],
        filters: &[
            (0, ""),
            (5, "ARRAY[md5('u' || 500)::uuid, md5('u' || 1000)::uuid]"),
            (6, "ARRAY[md5('p' || 30)::uuid]"),
            (6, "ARRAY[md5('unknown')::uuid]"),
            (7, "'{active}'"),
            (7, "'{paused}'"),
            (7, "'{expired}'"),
            (7, "'{unpaid}'"),
            (7, "'{pending,paused,cancelled}'"),
            (9, "true"),
            (9, "false"),
            (10, "'{ext_30}'"),
            (11, "'2025-12-24 00:00:00+00'"),
            (12, "'2024-02-01 00:00:00+00'"),
            (13, "'2025-11-01 00:00:00+00'"),
            (14, "'2024-02-01 00:00:00+00'"),
            (15, "'2025-11-20 00:00:00+00'"),
            (16, "'2024-01-02 00:00:00+00'"),
            (17, "'2025-11-20 00:00:00+00'"),
            (17, "'2024-08-01 00:00:00+00'"),
            (18, "'2024-01-02 00:00:00+00'"),
            (18, "'2025-04-01 00:00:00+00'"),
            (19, "'{daily}'"),
            (19, "'{monthly,yearly}'"),
            (20, "true"),
            (20, "false"),
        ],
    },
    FilteredList {
        mark: "currency = ANY ($11)) AND (created_at",
        file: "src/subscription_payments/payment_list_sql.rs",
        statements: 2,
        fixed: &[
            (5, "'1970-01-01 00:00:00+00'"),
            (6, "'9999-01-01 00:00:00+00'"),
        ],
        filters: &[
            (0, ""),
            (5, "'2024-02-01 00:00:00+00'"),
            (6, "'2024-01-02 00:00:00+00'"),
            (7, "ARRAY[md5('s' || 500)::uuid, md5('s' || 1000)::uuid]"),
            (8, "ARRAY[md5('u' || 500)::uuid, md5('u' || 1000)::uuid]"),
            (9, "'{completed}'"),
            (9, "'{failed,disputed}'"),
            (9, "'{disputed}'"),
            (10, "'{ext_30}'"),
            (11, "'{USD}'"),
            (11, "'{EUR,JPY}'"),
            (11, "'{JPY}'"),
        ],
    },
    FilteredList {
        mark: "paid_at >= $12 AND paid_at < $13",
        file: "src/subscription_payments/payment_list_sql.rs",
        statements: 2,
        fixed: &[
            (5, "'1970-01-01 00:00:00+00'"),
            (6, "'9999-01-01 00:00:00+00'"),
            (12, "'1970-01-01 00:00:00+00'"),
            (13, "'9999-01-01 00:00:00+00'"),
        ],
        filters: &[
            (0, ""),
            (8, "ARRAY[md5('u' || 500)::uuid, md5('u' || 1000)::uuid]"),
            (9, "'{completed}'"),
            (10, "'{ext_30}'"),
            (12, "'2024-02-10 00:00:00+00'"),
            (12, "'2024-04-10 00:00:00+00'"),
            (13, "'2024-01-02 00:00:00+00'"),
            (13, "'2024-04-10 00:00:00+00'"),
        ],
    },
    FilteredList {
        mark: "object_id = ANY ($10)) AND (created_at",
        file: "src/payment_accounts/notifications_sql.rs",
        statements: 2,
        fixed: &[
            (5, "'1970-01-01 00:00:00+00'"),
            (6, "'9999-01-01 00:00:00+00'"),
        ],
        filters: &[
            (0, ""),
            (7, "ARRAY[md5('pac' || 10)::uuid]"),
            (8, "'{failed,refused}'"),
            (8, "'{done}'"),
            (10, "'{sub_10,sub_20}'"),
            (10, "'{unknown}'"),
        ],
    },
    FilteredList {
        mark: "($8::text IS NULL OR email_key = $8)",
        file: "src/users/user_list_sql.rs",
        statements: 2,
        fixed: &[
            (5, "'1970-01-01 00:00:00+00'"),
            (6, "'9999-01-01 00:00:00+00'"),
        ],
        filters: &[
            (0, ""),
            (5, "'2025-11-01 00:00:00+00'"),
            (7, "ARRAY[md5('u' || 500)::uuid]"),
            (8, "'500@example.com'"),
            (9, "'{customer-500,customer-510,unknown}'"),
        ],
    },
];

/// Asserts that each filter of each list, in all orders, uses an index and reads few pages, whether it
/// selects few rows or nearly all.
async fn assert_filters_use_indexes(client: &tokio_postgres::Client) {
    let custom = "SET plan_cache_mode = force_custom_plan";
    client.batch_execute(custom).await.unwrap();
    for list in FILTERED_LISTS {
        let found = statements(&crate_path(list.file)).into_iter();
        // The order by email address has a separate test.
        let found =
            found.filter(|sql| list.is_statement(sql) && !sql.contains("ORDER BY email_key"));
        let mut explained = 0;
        for sql in found {
            let ends = if sql.contains("DESC") {
                [
                    "'9999-01-01 00:00:00+00'",
                    "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
                ]
            } else {
                [
                    "'1970-01-01 00:00:00+00'",
                    "'00000000-0000-0000-0000-000000000000'",
                ]
            };
            let parameters = (1..100)
                .take_while(|n| sql.contains(&format!("${n}")))
                .count();
            for (at, value) in list.filters {
                let mut values = vec!["NULL"; parameters];
                values[0] = "md5('0')::uuid";
                [values[1], values[2], values[3]] = [ends[0], ends[1], "51"];
                for (number, fixed) in list.fixed {
                    values[number - 1] = fixed;
                }
                if *at > 0 {
                    values[at - 1] = value;
                }
                // A range of `updated_at` is read in its own order only.
                let is_update_range = list.mark == "$20::boolean" && [17, 18].contains(at);
                if is_update_range && !sql.contains("ORDER BY updated_at") {
                    continue;
                }
                assert_reads_few_pages(client, &sql, &values, 1_500).await;
            }
            explained += 1;
        }
        assert_eq!(explained, list.statements, "{}", list.file);
    }
}

/// Asserts that the list of a value that no row has reads few pages with its generic plan, also if the planner knows
/// only one value of the column.
async fn assert_rare_values_use_indexes(client: &tokio_postgres::Client) {
    let one_currency = "UPDATE subscription_payments SET currency = 'USD' WHERE currency <> 'USD';
        ANALYZE subscription_payments";
    client.batch_execute(one_currency).await.unwrap();
    let (old, new) = ("'1970-01-01 00:00:00+00'", "'9999-01-01 00:00:00+00'");
    let mut explained = 0;
    for file in [
        "src/subscriptions/list_sql.rs",
        "src/subscription_payments/payment_list_sql.rs",
    ] {
        for sql in statements(&crate_path(file)) {
            let Some((before, after)) = sql.split_once(", created_at, id) ") else {
                continue;
            };
            let value = match before.rsplit('(').next().unwrap() {
                "plan_id" => "md5('unknown')::uuid",
                "billing_cycle" => "'yearly'",
                "currency" => "'JPY'",
                "status" if file.contains("payments") => "'disputed'",
                "status" => "'unpaid'",
                column => panic!("{column}"),
            };
            let key = if after.starts_with('>') {
                [old, "'00000000-0000-0000-0000-000000000000'"]
            } else {
                [new, "'ffffffff-ffff-ffff-ffff-ffffffffffff'"]
            };
            let mut values = vec!["md5('0')::uuid", key[0], key[1], "51", old, new];
            if sql.contains("plan_id = $7") {
                values.push("md5('p' || 30)::uuid");
            }
            values.push(value);
            if sql.contains("ends_at > $") {
                values.push(old);
            }
            assert_reads_few_pages(client, &sql, &values, 30).await;
            explained += 1;
        }
    }
    assert_eq!(explained, 12, "six lists in both orders");
}

/// A prefix, also one that most addresses have, reads a range of the index.
async fn assert_prefixes_use_index(client: &tokio_postgres::Client) {
    let found = statements(&crate_path("src/users/user_list_sql.rs")).into_iter();
    let mut found = found.filter(|sql| sql.contains("ORDER BY email_key"));
    let sql = found.next().unwrap();
    assert_eq!(found.next(), None);
    for [first, end, after] in [
        ["'!'", "U&'\\+10FFFF'", "''"],
        ["'5'", "U&'5\\+10FFFF'", "''"],
        ["'5'", "U&'5\\+10FFFF'", "'59'"],
        ["'12340@'", "U&'12340@\\+10FFFF'", "''"],
        ["'none'", "U&'none\\+10FFFF'", "''"],
    ] {
        let (old, new) = ("'1970-01-01 00:00:00+00'", "'9999-01-01 00:00:00+00'");
        let values = [
            "md5('0')::uuid",
            first,
            end,
            "51",
            old,
            new,
            "NULL",
            "NULL",
            "NULL",
            after,
        ];
        assert_reads_few_pages(client, &sql, &values, 150).await;
    }
}

/// Asserts that a statement with these values uses an index and reads fewer than `max` pages.
async fn assert_reads_few_pages(
    client: &tokio_postgres::Client,
    sql: &str,
    values: &[&str],
    max: u64,
) {
    let values = values.join(", ");
    let explain = format!(
        "PREPARE s AS {sql}; EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off) EXECUTE s({values}); DEALLOCATE s"
    );
    let lines = client.simple_query(&explain).await.unwrap();
    let plan: Vec<String> = lines
        .iter()
        .filter_map(|line| match line {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
        .collect();
    let filled = filled_partitions(client).await;
    let scans = plan.iter().any(|line| scans_large_table(line, &filled));
    let plan = plan.join("\n");
    assert!(!scans, "{values}\n{plan}");
    // The first line counts the buffers of the whole plan.
    let buffers = plan.lines().find(|line| line.contains("Buffers:")).unwrap();
    let pages: u64 = buffers
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("hit=").or(word.strip_prefix("read=")))
        .map(|number| number.parse::<u64>().unwrap())
        .sum();
    assert!(pages < max, "{values} reads {pages} pages\n{plan}");
}
