//! Every change has its event: who, when, by which request, what.

use crate::{
    harness::{process::run_ok, service::Service},
    subscription_plans::minimal,
};

#[tokio::test]
async fn a_plan_and_its_event_are_one() {
    let service = Service::start().await;
    let (client, value) = service.make_client(&[]);
    let caller = service
        .anonymous()
        .with("client-id", &value)
        .with("x-request-id", "my-request.1");
    let answer = caller
        .post("/subscription-plans", &minimal("pro").to_string())
        .await;
    assert_eq!(answer.header("x-request-id"), "my-request.1");

    let database = service.database.connect().await;
    let rows = database
        .query(
            "SELECT 'plan_' || replace(subject_id::text, '-', ''), 'cli_' || replace(client_id::text, '-', ''),
                    user_id IS NULL, request_id, data::text, tableoid::regclass::text,
                    abs(extract(epoch FROM now() - at)) < 60
             FROM events WHERE kind = 'plan.created'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    let text = |column: usize| rows[0].get::<_, String>(column);
    assert_eq!(answer.json()["id"], text(0));
    assert_eq!(text(1), client);
    assert!(rows[0].get::<_, bool>(2));
    assert_eq!(text(3), "my-request.1");
    let data: serde_json::Value = serde_json::from_str(&text(4)).unwrap();
    assert_eq!(data, answer.json());
    // In the partition of its month, not in the one that catches strays.
    let month = jiff::Timestamp::now().to_string()[..7].replace('-', "_");
    assert_eq!(text(5), format!("events_{month}"));
    assert!(rows[0].get::<_, bool>(6));
}

/// What the operator does on the command line is recorded too.
#[tokio::test]
async fn commands_leave_events() {
    let service = Service::start().await;
    let (client, _) = service.make_client(&["--name", "backend"]);
    run_ok(&service.variables, &["client", "rotate", &client]);
    run_ok(&service.variables, &["client", "disable", &client]);
    run_ok(
        &service.variables,
        &["tenant", "set", "--default-currency", "EUR"],
    );
    let database = service.database.connect().await;
    let rows = database
        .query("SELECT kind FROM events ORDER BY at, id", &[])
        .await
        .unwrap();
    let kinds: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        kinds,
        [
            "tenant.created",
            "client.created",
            "client.rotated",
            "client.disabled",
            "tenant.updated"
        ]
    );
}

/// A month that nobody made in time: its events are caught, and move when it is made.
#[tokio::test]
async fn months_are_made_late_and_dropped_when_told() {
    let service = Service::start().await;
    let database = service.database.connect().await;
    let insert = "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
                  VALUES (gen_random_uuid(), $1::text::timestamptz, gen_random_uuid(), 'test', gen_random_uuid(), '{}')";
    for at in [
        "2019-12-31T23:59:59.999999Z",
        "2020-01-01T00:00:00Z",
        "2020-01-31T23:59:59.999999Z",
        "2020-02-01T00:00:00Z",
    ] {
        database.execute(insert, &[&at]).await.unwrap();
    }
    database.batch_execute("SET timezone = 'Asia/Tokyo'; SELECT events_make_month('2020-01-15Z'); SELECT events_make_month('2020-01-15Z')").await.unwrap();
    let count = async |table: &str| -> i64 {
        database
            .query_one(&format!("SELECT count(*) FROM {table}"), &[])
            .await
            .unwrap()
            .get(0)
    };
    assert_eq!(
        (count("events_2020_01").await, count("events_default").await),
        (2, 2)
    );
    let dropped = database
        .query("SELECT events_drop_months_before(3)", &[])
        .await
        .unwrap();
    assert_eq!(dropped.len(), 1);
    assert_eq!(
        count("events WHERE at >= '2020-01-01Z' AND at < '2020-02-01Z'").await,
        0
    );
}
