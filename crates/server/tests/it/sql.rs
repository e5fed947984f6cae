//! Every statement of the service is prepared against the migrated schema: what a compiler would
//! check, this checks.

use std::path::Path;

use crate::{
    architecture::{rust_files, source},
    harness::database::Database,
};

/// The string literal that a text begins with.
fn literal(text: &str) -> &str {
    let rest = text.trim_start().strip_prefix('"');
    let rest = rest.expect("a statement is a plain string literal");
    let literal = rest.split('"').next().unwrap();
    assert!(
        !literal.contains('\\'),
        "a statement has no escapes: {literal}"
    );
    literal
}

/// The texts of all `Sql::new("…")` in a source file; `select!("…")` stands for the list of columns, which the file or the
/// table beside it has, and what follows.
pub fn statements(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let table = std::fs::read_to_string(path.with_file_name("table.rs")).unwrap_or_default();
    let columns = [&text, &table].into_iter();
    let head = { columns }.find_map(|text| text.split("concat!(").nth(1).map(literal));
    text.match_indices("Sql::new(")
        .map(|(at, found)| {
            let rest = text[at + found.len()..].trim_start();
            match rest.strip_prefix("select!(") {
                Some(rest) => format!("{}{}", head.unwrap(), literal(rest)),
                None => literal(rest).to_owned(),
            }
        })
        .collect()
}

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let database = Database::create().await;
    let client = database.connect().await;
    let mut count = 0;
    for path in rust_files(&source("src")) {
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

/// Each statement on a table that has a tenant is held to one tenant: by its key, or by the row it
/// adds. The exceptions are listed.
#[tokio::test]
async fn every_statement_names_the_tenant() {
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
    // The look-ups that come before a tenant is known, and housekeeping, which serves all of them.
    let exceptions = [
        "allowed_origins @> ARRAY[$1]",
        "WHERE client_values.value_hash = $1",
        "DELETE FROM client_values",
        "DELETE FROM idempotency_keys WHERE ctid",
        "DELETE FROM sessions\n",
        // The lifecycle task, which serves all of them too: each tenant by its own rules.
        "WHERE tenant_id = rule.tenant_id",
    ];
    for path in rust_files(&source("src")) {
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

/// Rows by the million where rows can become many, of several tenants each.
const MANY: &str = "
    SET session_replication_role = replica; SET synchronous_commit = off;
    INSERT INTO tenants (tenant_id, name, cell, default_currency, created_at)
    SELECT md5(n::text)::uuid, 't' || n, 'home', 'USD', now() FROM generate_series(1, 1000) AS n;
    INSERT INTO clients (tenant_id, id, kind, name, scopes, allow_addresses, allowed_origins, created_at)
    SELECT md5((n % 1000 + 1)::text)::uuid, md5('c' || n)::uuid, CASE n % 2 WHEN 0 THEN 'secret' ELSE 'publishable' END,
        'c', '{}', '{}', CASE n % 2 WHEN 0 THEN '{}' ELSE ARRAY['https://a' || n || '.example'] END, now()
    FROM generate_series(1, 1000000) AS n;
    INSERT INTO client_values (tenant_id, client_id, value_hash, created_at, expires_at)
    SELECT tenant_id, id, sha256(id::text::bytea), now(), CASE WHEN random() < 0.5 THEN now() END FROM clients;
    INSERT INTO identity_providers (tenant_id, issuer, audiences, verify, created_at)
    SELECT md5((n % 1000 + 1)::text)::uuid, 'https://i' || n || '.example', '{a}', 'jwt', now()
    FROM generate_series(1, 1000000) AS n;
    INSERT INTO idempotency_keys (tenant_id, scope_hash, fingerprint, location, body, created_at, expires_at)
    SELECT md5((n % 10)::text)::uuid, sha256(n::text::bytea), sha256('x'), '/x', '{}', now(), now() + n * interval '1 second'
    FROM generate_series(1, 1000000) AS n;
    INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
    SELECT md5((n % 10)::text)::uuid, now(), md5('e' || n)::uuid, 'x', md5('s' || n / 5)::uuid, '{}'
    FROM generate_series(1, 1000000) AS n;
    INSERT INTO users (tenant_id, id, email, email_key, created_at)
    SELECT md5((n % 10)::text)::uuid, md5('u' || n)::uuid, n || '@example.com', n || '@example.com', now()
    FROM generate_series(1, 1000000) AS n;
    INSERT INTO identities (tenant_id, issuer, subject, user_id, created_at)
    SELECT tenant_id, 'https://i.example', id::text, id, created_at FROM users;
    INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, salt, generation, confirmed_generation,
        refreshed_at, created_at, last_used_at, expires_at)
    SELECT tenant_id, gen_random_uuid(), id, id, 'https://i.example', '192.0.2.1', '0123456789abcdef', 0, 0,
        now(), now(), now(), now() FROM users;
    INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
        node_quota, most_popular, tier, is_active, created_at, updated_at)
    SELECT md5((n % 10)::text)::uuid, gen_random_uuid(), 'p' || n, 'P', '{}', 1999, 'USD', 'monthly',
        0, false, n % 1000, n % 7 <> 0, timestamptz '2020-01-01' + n * interval '1 minute', now()
    FROM generate_series(1, 1000000) AS n;
    INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle, external_id,
        billing_cycle, status, suspended, starts_at, renews_at, ends_at, anchor, created_at, updated_at)
    SELECT md5((n % 10)::text)::uuid, md5('s' || n)::uuid, md5('u' || n / 2)::uuid, md5('p' || n % 1000)::uuid, 1999, 'USD',
        'monthly', CASE WHEN n % 3 = 0 THEN 'ext_' || n END, 'monthly',
        CASE WHEN n % 5000 = 0 THEN 'paused' WHEN n % 5000 = 10 THEN 'expired' ELSE 'active' END, n % 7000 = 20,
        began, began + interval '30 days', CASE WHEN n % 5000 = 10 OR n % 6000 = 30 THEN began + interval '20 days' END,
        began, began, began
    FROM generate_series(1, 1000000) AS n,
        LATERAL (SELECT timestamptz '2024-01-01' + n * interval '1 minute' AS began) AS times;
    INSERT INTO subscription_payments (tenant_id, id, subscription_id, amount_minor, currency, external_id, status,
        refunded_minor, created_at, updated_at)
    SELECT tenant_id, md5('pay' || id)::uuid, id, 1999, 'USD', external_id, 'completed', 0, created_at, created_at
    FROM subscriptions LIMIT 200000;
    ANALYZE";

/// Tables that stay small: one row, one per tenant, one per task. Whatever is larger is never read from
/// end to end.
const SMALL: &[&str] = &[
    "instance",
    "tenants",
    "task_leases",
    "signing_keys",
    "pg_class",
];

/// On a million rows each statement walks an index, and a list is not sorted.
#[tokio::test]
async fn every_statement_uses_its_index() {
    let database = Database::create().await;
    let client = database.connect().await;
    client.batch_execute(MANY).await.unwrap();
    let generic = "SET plan_cache_mode = force_generic_plan";
    client.batch_execute(generic).await.unwrap();
    let this_month = "SELECT to_char(now() AT TIME ZONE 'UTC', '\"events_\"YYYY_MM')";
    let filled: String = client.query_one(this_month, &[]).await.unwrap().get(0);
    let mut explained = 0;
    for path in rust_files(&source("src")) {
        for sql in statements(&path) {
            let verb = sql.split_whitespace().next().unwrap();
            if !["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&verb) {
                continue;
            }
            // Planned with its values; see below.
            if sql.contains("LIMIT $14") {
                continue;
            }
            explained += 1;
            let parameters = (1..20)
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
            for line in &plan {
                let scanned = line.split("Seq Scan on ").nth(1);
                let table = scanned.map(|rest| rest.split(' ').next().unwrap());
                // Of the months of events one is filled; whatever is asked of the others costs nothing.
                let empty = |table: &str| table.starts_with("events_") && table != filled;
                assert!(
                    table.is_none_or(|table| SMALL.contains(&table) || empty(table)),
                    "{}: {sql}\n{}",
                    path.display(),
                    plan.join("\n")
                );
            }
            let list = [
                "FROM subscription_plans",
                "FROM subscriptions\n",
                "FROM subscription_payments\n",
            ]
            .iter()
            .any(|from| sql.contains(from))
                && sql.contains("LIMIT $");
            if sql.contains("SKIP LOCKED") && list {
                // Both arms in the order of what is due; what they find is put together afterwards.
                for index in ["subscriptions_ending", "subscriptions_due"] {
                    let found = plan.iter().any(|line| line.contains(index));
                    assert!(found, "{index}\n{}", plan.join("\n"));
                }
                let sorted = plan
                    .iter()
                    .any(|line| line.contains("Sort Key: subscriptions."));
                assert!(!sorted, "{}", plan.join("\n"));
                continue;
            }
            // What is put together from several things first is no list of one table.
            let list = list && verb == "SELECT";
            let plan = plan.join("\n");
            assert!(!list || !plan.contains("Sort"), "{sql}\n{plan}");
            // What a list is narrowed to is where the index is entered, not what is thrown away on the way.
            for column in ["user_id", "plan_id", "status"] {
                let narrowed = list && sql.contains(&format!("{column} = $"));
                let entered = plan
                    .lines()
                    .any(|line| line.contains("Index Cond") && line.contains(column));
                assert!(!narrowed || entered, "{column}: {sql}\n{plan}");
            }
        }
    }
    assert!(
        explained >= 20,
        "only {explained} statements were explained"
    );
    every_filter_uses_its_index(&client).await;
}

/// A list of subscriptions with filters is planned with its values: each filter, and each with each order, takes the index
/// that narrows most, and touches few rows, whether what is asked for is rare or nearly everything.
async fn every_filter_uses_its_index(client: &tokio_postgres::Client) {
    let custom = "SET plan_cache_mode = force_custom_plan";
    client.batch_execute(custom).await.unwrap();
    let lists = statements(&source("src/subscriptions/listed.rs"))
        .into_iter()
        .filter(|sql| sql.contains("LIMIT $14"));
    let now = "'2025-11-20 00:00:00+00'";
    // The number of the parameter, and what is asked for.
    let filters: &[(usize, &str)] = &[
        (0, ""),
        (2, "ARRAY[md5('u' || 500)::uuid, md5('u' || 1000)::uuid]"),
        (3, "ARRAY[md5('p' || 30)::uuid]"),
        (3, "ARRAY[md5('nobody has it')::uuid]"),
        (4, "'{active}'"),
        (4, "'{paused}'"),
        (4, "'{expired}'"),
        (4, "'{unpaid}'"),
        (4, "'{pending,paused,cancelled}'"),
        (6, "true"),
        (6, "false"),
        (7, "'{ext_30}'"),
        (8, "'2025-12-24 00:00:00+00'"),
        (9, "'2024-02-01 00:00:00+00'"),
        (10, "'2025-11-01 00:00:00+00'"),
        (11, "'2024-02-01 00:00:00+00'"),
    ];
    let mut explained = 0;
    for sql in lists {
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
        for (at, value) in filters {
            let mut values = vec!["NULL"; 14];
            values[0] = "md5('0')::uuid";
            values[4] = now;
            [values[11], values[12], values[13]] = [ends[0], ends[1], "51"];
            if *at > 0 {
                values[at - 1] = value;
            }
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
            let plan = plan.join("\n");
            assert!(!plan.contains("Seq Scan"), "{at} {value}\n{plan}");
            // The first line's buffers are those of the whole.
            let buffers = plan.lines().find(|line| line.contains("Buffers:")).unwrap();
            let touched: u64 = buffers
                .split_whitespace()
                .filter_map(|word| word.strip_prefix("hit=").or(word.strip_prefix("read=")))
                .map(|number| number.parse::<u64>().unwrap())
                .sum();
            assert!(
                touched < 1_500,
                "{at} {value} touches {touched} pages\n{plan}"
            );
            explained += 1;
        }
    }
    assert_eq!(explained, filters.len() * 2);
}
