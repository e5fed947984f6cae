//! Concurrent changes of one user while workers add them to the sums and are killed: nothing is lost, counted twice or
//! left over.
//!
//! `ROUNDS` sets the number of rounds; `just prove report-races` uses 50.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::{
    harness::{
        api::ApiClient,
        env_number,
        process::{Process, Server, run_ok},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

/// The sums of the current generation as text, without rows that are zero.
async fn sums(database: &Client) -> Vec<String> {
    let mut sums = Vec::new();
    for (table, figures) in [
        (
            "revenue_movements",
            "users, changes, subscriptions, arr_minor",
        ),
        ("revenue_statuses", "subscriptions, arr_minor"),
        ("revenue_outcomes", "subscriptions, arr_minor"),
        ("revenue_cohorts", "joined, users, arr_minor"),
        ("payments_daily", "payments, amount_minor"),
    ] {
        let zeros = vec!["0"; figures.split(',').count()].join(", ");
        let sql = format!(
            "SELECT (to_jsonb(sums) - 'generation')::text FROM {table} AS sums
             WHERE generation = coalesce((SELECT generation FROM report_state AS state
                WHERE state.tenant_id = sums.tenant_id), 0) AND ({figures}) <> ({zeros})
             ORDER BY 1"
        );
        for row in database.query(&sql, &[]).await.unwrap() {
            sums.push(format!("{table} {}", row.get::<_, &str>(0)));
        }
    }
    sums
}

pub async fn wait_for_roll_up(database: &Client) {
    wait_until(
        "all changes are in the sums",
        Duration::from_mins(1),
        async || {
            let sql =
                "SELECT NOT EXISTS (SELECT FROM all_pending_revenue_changes WHERE at <= now())
            AND NOT EXISTS (SELECT FROM payment_changes)";
            database.query_one(sql, &[]).await.unwrap().get(0)
        },
    )
    .await;
}

struct Race {
    service: Service<Server>,
    api: ApiClient,
    plans: Vec<Value>,
    user: Value,
    subscription: Value,
}

impl Race {
    async fn start() -> Self {
        let service = Service::start_with(|variables| {
            variables.insert("PERENNIAL_WORKERS", "0".to_owned());
        })
        .await;
        let api = service.api(&[]);
        let mut plans = Vec::new();
        for (slug, price) in [("pro", 19.99), ("team", 49.0), ("basic", 5.0)] {
            let mut plan = minimal_plan(slug);
            plan["price"] = json!(price);
            plans.push(api.create("/subscription-plans", &plan).await);
        }
        let user = api
            .create("/users", &json!({"email": "racer@example.com"}))
            .await;
        let mut race = Self {
            service,
            api,
            plans,
            user,
            subscription: Value::Null,
        };
        race.subscription = race.create(0).await;
        race
    }

    async fn create(&self, plan: usize) -> Value {
        let fields =
            json!({"user_id": self.user["id"], "subscription_plan_id": self.plans[plan]["id"]});
        self.api.create("/subscriptions", &fields).await
    }

    /// Sends different changes of the user's subscriptions at once.
    async fn round(&self, number: usize) {
        let other = self.create(number % 3).await;
        let path = |subscription: &Value| {
            format!("/subscriptions/{}", subscription["id"].as_str().unwrap())
        };
        let (shared, own) = (path(&self.subscription), path(&other));
        let status = if number.is_multiple_of(2) {
            "unpaid"
        } else {
            "active"
        };
        let plan = json!({"subscription_plan_id": self.plans[number % 3]["id"]}).to_string();
        let quantity = json!({"quantity": 1 + number % 7}).to_string();
        let status = json!({"status": status}).to_string();
        let payment =
            json!({"subscription_id": self.subscription["id"], "amount": 19.99, "currency": "USD",
            "status": "completed"})
            .to_string();
        tokio::join!(
            self.api.put(&shared, &quantity),
            self.api.put(&shared, &status),
            self.api.put(&shared, &plan),
            self.api.put(&own, r#"{"status": "paused"}"#),
            self.api.put(&own, r#"{"quantity": 3}"#),
            self.api.post("/subscription-payments", &payment),
            async {
                if number.is_multiple_of(3) {
                    self.api.delete(&own).await;
                } else {
                    self.api.put(&own, r#"{"status": "expired"}"#).await;
                }
            },
        );
    }
}

#[tokio::test]
async fn racing_changes_and_killed_roll_ups_leave_no_drift() {
    let rounds = env_number("ROUNDS").unwrap_or(8);
    let race = Race::start().await;
    let variables = &race.service.variables;
    let database = race.service.database.connect().await;
    let mut workers: Vec<Process> = Vec::new();
    for number in 0..rounds {
        let [first, second] = [0, 1].map(|_| Process::spawn(variables, &["work"]));
        workers.extend([first, second]);
        Box::pin(race.round(number)).await;
        // Killed while it is connecting, adding or idle, depending on the round.
        tokio::time::sleep(Duration::from_millis(37 * number as u64 % 400)).await;
        for mut worker in workers.drain(..) {
            worker.kill();
        }
    }
    let _worker = Process::spawn(variables, &["work"]);
    wait_for_roll_up(&database).await;
    let checked = run_ok(variables, &["report", "check"]);
    assert!(checked.contains("equal the subscriptions"), "{checked}");
    let incremental = sums(&database).await;
    assert!(incremental.len() > 10, "{incremental:?}");
    run_ok(variables, &["report", "rebuild"]);
    assert_eq!(sums(&database).await, incremental);
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/report-replay");
    let replay = Command::new(tool)
        .args(["--database", &race.service.database.url])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&replay.stdout);
    assert!(replay.status.success(), "{out}");
    // A wrong sum is found and repaired.
    for span in ["day", "month"] {
        let spoil = "UPDATE revenue_movements SET arr_minor = arr_minor + 1 WHERE ctid = (SELECT ctid FROM revenue_movements
            WHERE span = $1 AND plan_id = '00000000-0000-0000-0000-000000000000' LIMIT 1)";
        assert_eq!(database.execute(spoil, &[&span]).await.unwrap(), 1);
        let problem = crate::harness::process::run_err(variables, &["report", "check"]);
        assert!(problem.contains("report rebuild"), "{problem}");
        run_ok(variables, &["report", "rebuild"]);
        run_ok(variables, &["report", "check"]);
        assert_eq!(sums(&database).await, incremental);
    }
}

/// A report reads its sums one after the other. A rebuild that completes between two reads deletes the old ones.
#[tokio::test]
async fn report_is_read_in_one_snapshot() {
    let race = Race::start().await;
    let variables = &race.service.variables;
    let database = race.service.database.connect().await;
    let mut worker = Process::spawn(variables, &["work"]);
    wait_for_roll_up(&database).await;
    assert!(worker.stop().await);
    run_ok(variables, &["report", "rebuild"]);
    let expected = race.api.get_json("/reports/revenue").await;
    assert_eq!(expected["currencies"][0]["closing"]["mrr"], "19.99");

    let mut other = race.service.database.connect().await;
    let rebuild = other.transaction().await.unwrap();
    // The report has read the movements when it needs this table.
    rebuild
        .batch_execute("LOCK TABLE revenue_statuses")
        .await
        .unwrap();
    let (report, ()) = tokio::join!(race.api.get_json("/reports/revenue"), async {
        let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'revenue_statuses'::regclass AND NOT granted";
        wait_until("the report waits", Duration::from_secs(10), async || {
            race.service.count(waits).await == 1
        })
        .await;
        let complete = "UPDATE report_state SET generation = generation + 1;
            DELETE FROM revenue_movements; DELETE FROM revenue_statuses";
        rebuild.batch_execute(complete).await.unwrap();
        rebuild.commit().await.unwrap();
    });
    assert_eq!(report["currencies"], expected["currencies"]);
    let after = race.api.get_json("/reports/revenue").await;
    assert_eq!(after["currencies"], json!([]));
}

/// A rebuild that is killed again and again continues, and its result is that of one that was not.
#[tokio::test]
async fn killed_rebuild_continues() {
    let race = Race::start().await;
    let variables = &race.service.variables;
    let database = race.service.database.connect().await;
    let _worker = Process::spawn(variables, &["work"]);
    for number in 0..3 {
        Box::pin(race.round(number)).await;
    }
    wait_for_roll_up(&database).await;
    let expected = sums(&database).await;
    let started =
        "UPDATE report_state SET rebuild_generation = generation + 1, rebuilt_users_to = NULL";
    run_ok(variables, &["report", "rebuild"]);
    database.execute(started, &[]).await.unwrap();
    for pause in [1, 20, 40, 60, 80] {
        let mut rebuild = Process::spawn(variables, &["report", "rebuild"]);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        rebuild.kill();
    }
    run_ok(variables, &["report", "rebuild"]);
    assert_eq!(sums(&database).await, expected);
    // The movements of one day can cancel each other; the subscription always has a status.
    let left = "SELECT count(*) FROM (SELECT generation FROM revenue_movements
        UNION SELECT generation FROM revenue_statuses) AS generations";
    assert_eq!(race.service.count(left).await, 1, "old sums are deleted");
}
