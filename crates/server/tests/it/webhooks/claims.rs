//! Claims with 10,000 tenants and 50,000 endpoints that have nothing to send.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, types::ToSql};
use uuid::Uuid;

use crate::{architecture::crate_path, harness::database::Database, sql_source::statements};

const ENDPOINTS: &str = "
    INSERT INTO event_log_tenants (tenant_id, last_position)
    SELECT md5('t' || n)::uuid, 100 FROM generate_series(1, :tenants) AS n;
    INSERT INTO webhook_endpoints (tenant_id, id, url, event_types, delivery_order, status, secret, created_at, updated_at,
        position)
    SELECT tenant_id, md5('w' || number || tenant_id)::uuid, 'https://a.example', '{}', 'none', 'enabled',
        repeat('s', 64)::bytea, now(), now(), 100
    FROM event_log_tenants, generate_series(1, 5) AS number;
    VACUUM ANALYZE webhook_endpoints, event_log_tenants";

/// Returns the statement of claims that contains a text, and not another one.
fn claim_statement(text: &str, other: &str) -> String {
    let found = statements(&crate_path("src/webhooks/claim_sql.rs")).into_iter();
    let mut found = found.filter(|sql| sql.contains("SKIP LOCKED"));
    found
        .find(|sql| sql.contains(text) && !sql.contains(other))
        .unwrap()
}

/// Claims until the plan is a generic one, and returns the number of claimed endpoints and the shortest duration.
async fn claim(
    client: &Client,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> (usize, Duration) {
    let statement = client.prepare(sql).await.unwrap();
    let (mut claimed, mut shortest) = (0, Duration::MAX);
    for _ in 0..12 {
        let started = Instant::now();
        claimed += client.query(&statement, parameters).await.unwrap().len();
        shortest = shortest.min(started.elapsed());
    }
    (claimed, shortest)
}

async fn pages_read(client: &Client, sql: &str, values: &str) -> u64 {
    let explain = format!(
        "SET plan_cache_mode = force_generic_plan; PREPARE s AS {sql};
         BEGIN; EXPLAIN (ANALYZE, BUFFERS, TIMING off, SUMMARY off) EXECUTE s({values}); ROLLBACK; DEALLOCATE s"
    );
    let lines = client.simple_query(&explain).await.unwrap();
    let lines = lines.iter().filter_map(|line| match line {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    let lines: Vec<String> = lines.collect();
    // The first line counts the buffers of the whole plan.
    let buffers = lines.iter().find(|line| line.contains("Buffers:")).unwrap();
    let words = buffers.split_whitespace();
    let numbers = words.filter_map(|word| word.strip_prefix("hit=").or(word.strip_prefix("read=")));
    numbers.map(|number| number.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn claims_do_not_read_idle_endpoints() {
    let tenants = 10_000;
    let database = Database::create().await;
    let client = database.connect().await;
    for statement in ENDPOINTS
        .replace(":tenants", &tenants.to_string())
        .split(';')
    {
        client.batch_execute(statement).await.unwrap();
    }
    let (holder, ttl, limit) = (Uuid::from_u128(1), 15.0_f64, 4_096_i64);
    let due = claim_statement("due_at <= now()", "ANY");
    let behind = claim_statement("ANY ($4)", "due_at");
    let all = claim_statement("position < last_position", "ANY ($4)");
    let grown = "SELECT array_agg(tenant_id) FROM (SELECT tenant_id FROM event_log_tenants LIMIT 100) AS tenants";
    let grown: Vec<Uuid> = client.query_one(grown, &[]).await.unwrap().get(0);

    let claimed_due = claim(&client, &due, &[&holder, &ttl, &limit]).await;
    let claimed_behind = claim(&client, &behind, &[&holder, &ttl, &limit, &grown]).await;
    let claimed_all = claim(&client, &all, &[&holder, &ttl, &limit]).await;
    println!(
        "claims of {} idle endpoints of {tenants} tenants: due {:?}, of 100 tenants {:?}, of all {:?}",
        tenants * 5,
        claimed_due.1,
        claimed_behind.1,
        claimed_all.1
    );
    assert_eq!((claimed_due.0, claimed_behind.0, claimed_all.0), (0, 0, 0));
    let values = format!("'{holder}', 15, 4096");
    let pages = pages_read(&client, &due, &values).await;
    assert!(pages < 20, "{pages} pages");
    let ids: Vec<String> = grown.iter().map(Uuid::to_string).collect();
    let values = format!("{values}, '{{{}}}'", ids.join(","));
    let pages = pages_read(&client, &behind, &values).await;
    assert!(pages < 3_000, "{pages} pages");

    // One endpoint each is due, has an expired lease, and is behind. Of a fourth, the pause has not ended.
    let change = "WITH four AS (SELECT tenant_id, id, row_number() OVER () AS number FROM webhook_endpoints LIMIT 4)
        UPDATE webhook_endpoints SET due_at = CASE number WHEN 1 THEN now() END,
            leased_until = CASE number WHEN 2 THEN now() - interval '1 second' END,
            position = CASE WHEN number > 2 THEN 99 ELSE 100 END,
            paused_until = CASE number WHEN 4 THEN now() + interval '1 hour' END
        FROM four WHERE webhook_endpoints.id = four.id AND webhook_endpoints.tenant_id = four.tenant_id";
    client.batch_execute(change).await.unwrap();
    let claimed = claim(&client, &due, &[&holder, &ttl, &limit]).await;
    assert_eq!(claimed.0, 2);
    let claimed = claim(&client, &all, &[&holder, &ttl, &limit]).await;
    assert_eq!(claimed.0, 1);
}
