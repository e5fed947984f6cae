//! Events: every change is recorded with its actor, time, request and data.

mod log;
pub mod log_copies;
pub mod log_fixture;
mod log_retention;
mod log_stress;

use crate::{
    harness::{database::Database, process::run_ok, service::Service},
    subscription_plans::minimal_plan,
};

mod catalog;
pub mod feed;
mod listen;
mod newest_first;
mod stream;
mod tail;
mod trigger;

#[tokio::test]
async fn created_plan_records_its_event() {
    let service = Service::start_in_process().await;
    let (client, value) = service.create_client(&[]);
    let api = service
        .anonymous()
        .with("client-id", &value)
        .with("x-request-id", "my-request.1");
    let response = api
        .post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    assert_eq!(response.header("x-request-id"), "my-request.1");

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
    assert_eq!(response.json()["id"], text(0));
    assert_eq!(text(1), client);
    assert!(rows[0].get::<_, bool>(2));
    assert_eq!(text(3), "my-request.1");
    let data: serde_json::Value = serde_json::from_str(&text(4)).unwrap();
    assert_eq!(data, response.json());
    // In the partition of its month, not in the default partition.
    let month = jiff::Timestamp::now().to_string()[..7].replace('-', "_");
    assert_eq!(text(5), format!("events_{month}"));
    assert!(rows[0].get::<_, bool>(6));
}

/// The operator is the operating system's user and host. Changes by API clients have none.
#[tokio::test]
async fn commands_record_their_operator() {
    let service = Service::start_in_process().await;
    let created = service.run_json(&["client", "create", "--name", "backend", "--json"]);
    let (client, key) = (&created["id"], created["client_id"].as_str().unwrap());
    let api = service.anonymous().with("client-id", key);
    api.post("/subscription-plans", &minimal_plan("pro").to_string())
        .await;
    let session = api.sign_up("ada@example.com").await.session().to_owned();
    api.sign_up("bob@example.com").await;
    let run = |arguments: &[&str]| run_ok(&service.variables, arguments);
    let subscription = ["--user", "ada@example.com", "--plan", "pro"];
    run(&[&["subscription", "create"], &subscription[..]].concat());
    run(&["session", "revoke", &session]);
    run(&["session", "revoke", "bob@example.com"]);
    run(&["user", "erase", "bob@example.com", "--yes"]);
    run(&["tenant", "set", "--default-currency", "EUR"]);
    let plan = ["plan", "create", "team", "--name", "Team", "--price", "9"];
    run(&[&plan[..], &["--billing-cycle", "monthly"]].concat());
    for _ in 0..2 {
        run(&["plan", "update", "team", "--tier", "1"]);
    }
    run(&["client", "rotate", client.as_str().unwrap()]);
    run(&["client", "disable", client.as_str().unwrap()]);

    let output = |program: &str, flag: &str| {
        let output = std::process::Command::new(program).arg(flag).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let operator = [output("id", "-un").trim(), output("uname", "-n").trim()].join("@");
    let database = service.database.connect().await;
    let sql = "SELECT DISTINCT kind, client_id IS NULL, operator FROM events WHERE kind <> 'tenant.created'";
    let rows = database.query(sql, &[]).await.unwrap();
    let mut by_operator = Vec::new();
    for row in &rows {
        let (kind, without_client): (String, bool) = (row.get(0), row.get(1));
        let expected = without_client.then(|| operator.clone());
        assert_eq!(row.get::<_, Option<String>>(2), expected, "{kind}");
        by_operator.extend(without_client.then_some(kind));
    }
    by_operator.sort();
    let expected = [
        "client.created",
        "client.disabled",
        "client.rotated",
        "plan.created",
        "plan.updated",
        "session.revoked",
        "subscription.created",
        "tenant.updated",
        "user.erased",
        "user.sessions_revoked",
    ];
    assert_eq!(by_operator, expected);
    let updates =
        "SELECT count(*) FROM events WHERE kind = 'plan.updated' AND data->'previous' ? 'tier'";
    let count = service.count(updates).await;
    assert_eq!(count, 1, "an unchanged plan has no event");
    let shown = run(&["user", "show", "ada@example.com"]);
    assert!(shown.contains(&format!("by {operator}")), "{shown}");
}

/// Events without a partition go to the default partition and move when theirs is created.
#[tokio::test]
async fn late_partitions_take_over_events_and_old_ones_are_dropped() {
    // Without a server, whose workers would create the partitions.
    let test_database = Database::create().await;
    let database = test_database.connect().await;
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
    // Partitions are months in UTC, independent of the session's time zone.
    for _ in 0..2 {
        let create = "SET timezone = 'Asia/Tokyo'; SELECT create_partitions('events')";
        database.batch_execute(create).await.unwrap();
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
    // An event without a position is kept.
    let drop = "SELECT drop_partitions('events', interval '3 months')";
    assert_eq!(database.query(drop, &[]).await.unwrap().len(), 0);
    log_fixture::set_numbered(&database).await;
    let dropped = database.query(drop, &[]).await.unwrap();
    assert_eq!(dropped.len(), 3);
    assert_eq!(count("events WHERE at < '2021-01-01Z'").await, 0);
}

#[tokio::test]
async fn partition_creation_under_load_loses_no_event() {
    let service = Service::start().await;
    let api = service.api(&[]);
    let database = service.database.connect().await;
    let month = format!(
        "events_{}",
        jiff::Timestamp::now().to_string()[..7].replace('-', "_")
    );
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let api = api.clone();
            tokio::spawn(async move {
                let mut acknowledged = 0_i64;
                for number in 0..100 {
                    let plan = minimal_plan(&format!("w-{writer}-{number}")).to_string();
                    let response = api.post("/subscription-plans", &plan).await;
                    assert!([201, 503].contains(&response.status), "{}", response.text);
                    acknowledged += i64::from(response.status == 201);
                }
                acknowledged
            })
        })
        .collect();
    for _ in 0..5 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let detach = format!(
            "ALTER TABLE events DETACH PARTITION {month}; ALTER TABLE {month} RENAME TO detached"
        );
        database
            .batch_execute(&format!("BEGIN; {detach}; COMMIT"))
            .await
            .unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        database
            .batch_execute(&format!(
                "BEGIN; SELECT create_partitions('events'); INSERT INTO {month} SELECT * FROM detached; DROP TABLE detached; COMMIT"
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
