//! Every change has its event: who, when, by which request, what.

use crate::{
    harness::{database::Database, process::run_ok, service::Service},
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

/// Months that nobody made in time: their events are caught, and move when the months are made.
#[tokio::test]
async fn months_are_made_late_and_dropped_when_told() {
    // Without workers, which would make them at once.
    let own = Database::create().await;
    let database = own.connect().await;
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
    let count = async |table: &str| -> i64 {
        let query = format!("SELECT count(*) FROM {table}");
        database.query_one(&query, &[]).await.unwrap().get(0)
    };
    assert_eq!(count("events_default").await, 4);
    // Whatever zone the session is in, a month is a month of UTC.
    for _ in 0..2 {
        let make = "SET timezone = 'Asia/Tokyo'; SELECT events_make_months()";
        database.batch_execute(make).await.unwrap();
        let months = [
            "events_2019_12",
            "events_2020_01",
            "events_2020_02",
            "events_default",
        ];
        let mut counts = Vec::new();
        for month in months {
            counts.push(count(month).await);
        }
        assert_eq!(counts, [1, 2, 1, 0]);
    }
    let dropped = database
        .query("SELECT events_drop_months_before(3)", &[])
        .await
        .unwrap();
    assert_eq!(dropped.len(), 3);
    assert_eq!(count("events WHERE at < '2021-01-01Z'").await, 0);
}

/// A missing month is made while events come in: none is lost, and none is refused for good.
#[tokio::test]
async fn a_month_is_made_under_load() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let database = service.database.connect().await;
    let month = format!(
        "events_{}",
        jiff::Timestamp::now().to_string()[..7].replace('-', "_")
    );
    let writers: Vec<_> = (0..4)
        .map(|lane| {
            let caller = caller.clone();
            tokio::spawn(async move {
                let mut acknowledged = 0_i64;
                for number in 0..100 {
                    let plan = minimal(&format!("w-{lane}-{number}")).to_string();
                    let answer = caller.post("/subscription-plans", &plan).await;
                    assert!([201, 503].contains(&answer.status), "{}", answer.text);
                    acknowledged += i64::from(answer.status == 201);
                }
                acknowledged
            })
        })
        .collect();
    for _ in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let away = format!(
            "ALTER TABLE events DETACH PARTITION {month}; ALTER TABLE {month} RENAME TO away"
        );
        database
            .batch_execute(&format!("BEGIN; {away}; COMMIT"))
            .await
            .unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        database
            .batch_execute(&format!(
                "BEGIN; SELECT events_make_months(); INSERT INTO {month} SELECT * FROM away; DROP TABLE away; COMMIT"
            ))
            .await
            .unwrap();
    }
    let mut acknowledged = 0;
    for writer in writers {
        acknowledged += writer.await.unwrap();
    }
    let count = service
        .count("SELECT count(*) FROM events WHERE kind = 'plan.created'")
        .await;
    assert_eq!(count, acknowledged);
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans")
            .await,
        acknowledged
    );
    assert!(acknowledged >= 380, "{acknowledged} of 400");
}
