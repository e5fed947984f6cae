//! `examples/import-subscribers.py`: subscribers of another system.

use std::{
    fmt::Write as _,
    fs::File,
    io::Write as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{TemporaryFile, assert_success, script};
use crate::harness::{
    child::ChildProcess, env_number, process::Server, service::Service, wait_until,
};

/// `just prove import-subscribers` imports more.
const SUBSCRIBERS: i64 = 300;
const KILL_TIMEOUT: Duration = Duration::from_mins(5);

/// A service with two plans, and a file of subscribers.
struct ImportFixture {
    service: Service,
    file: TemporaryFile,
}

impl ImportFixture {
    /// Writes a file with this many subscribers. Every fifth has cancelled, every seventh is late, and every third
    /// has another price than the plan's.
    async fn start(service: Service, subscribers: i64) -> Self {
        let api = service.api(&[]);
        for (slug, price) in [("pro", "19.99"), ("team", "49.00")] {
            let plan =
                json!({"name": slug, "slug": slug, "price": price, "billing_cycle": "monthly"});
            api.create("/subscription-plans", &plan).await;
        }
        let mut lines = String::new();
        for number in 0..subscribers {
            let (plan, price) = if number % 3 == 0 {
                ("pro", "9.99")
            } else {
                ("team", "49.00")
            };
            let mut subscription = json!({"id": format!("s-{number}"), "plan": plan, "price": price, "status": "active",
                "starts_at": "2019-03-04T10:00:00Z", "renews_at": "2031-12-04T10:00:00Z"});
            if number % 5 == 0 {
                subscription["status"] = json!("cancelled");
                subscription["ends_at"] = json!("2020-03-04T10:00:00Z");
            } else if number % 7 == 0 {
                subscription["status"] = json!("past_due");
            }
            let payment = |month: i64| {
                json!({"id": format!("p-{number}-{month}"), "amount": price, "currency": "USD", "status": "completed",
                    "paid_at": format!("2019-{month:02}-04T10:00:00Z")})
            };
            subscription["payments"] = json!([payment(4), payment(3)]);
            let subscriber = json!({"id": format!("customer-{number}"), "email": format!("u{number}@example.com"),
                "subscriptions": [subscription]});
            writeln!(lines, "{subscriber}").unwrap();
        }
        let file = TemporaryFile::new("perennial-import-");
        let mut created = File::create(file.path()).unwrap();
        created.write_all(lines.as_bytes()).unwrap();
        Self { service, file }
    }

    fn command(&self) -> Command {
        let mut command = script(&self.service, "python3", "import-subscribers.py");
        command.arg(self.file.path());
        command
    }

    async fn count_users(&self) -> i64 {
        self.service.count("SELECT count(*) FROM users").await
    }
}

#[tokio::test]
async fn killed_import_completes_without_duplicates() {
    let subscribers = env_number("SUBSCRIBERS").unwrap_or(SUBSCRIBERS);
    let mut import = ImportFixture::start(Service::start().await, subscribers).await;
    let api = import.service.api(&[]);
    // One of them has signed up before.
    let known = api.sign_up("u7@example.com").await;

    // The service restarts in the first third of the import, and the script is killed in the second.
    let started = Instant::now();
    let mut child = ChildProcess::spawn(import.command().stderr(Stdio::null()));
    wait_until("a third is imported", KILL_TIMEOUT, async || {
        import.count_users().await > subscribers / 3
    })
    .await;
    let variables = import.service.variables.clone();
    import.service.server.restart(&variables).await;
    wait_until("half is imported", KILL_TIMEOUT, async || {
        import.count_users().await > subscribers / 2
    })
    .await;
    child.kill();
    let (killed_at, imported) = (started.elapsed(), import.count_users().await);
    assert!(imported < subscribers, "the import was complete");

    let started = Instant::now();
    let printed = assert_success(import.command().output().unwrap());
    println!(
        "{imported} of {subscribers} subscribers in {killed_at:.1?} with a restart; all in another {:.1?}\n{printed}",
        started.elapsed()
    );
    let cancelled = (subscribers + 4) / 5;
    let late = (0..subscribers)
        .filter(|n| n % 7 == 0 && n % 5 != 0)
        .count() as i64;
    let expected = format!("USD active {}", group(subscribers - cancelled - late));
    assert!(printed.contains(&expected), "{expected}: {printed}");

    for (sql, expected) in [
        ("SELECT count(*) FROM users", subscribers),
        ("SELECT count(DISTINCT external_id) FROM users", subscribers),
        ("SELECT count(*) FROM subscriptions", subscribers),
        (
            "SELECT count(*) FROM subscriptions WHERE status = 'past_due'",
            late,
        ),
        (
            "SELECT count(*) FROM subscriptions WHERE status IN ('cancelled', 'expired')",
            cancelled,
        ),
        (
            "SELECT count(*) FROM subscriptions WHERE custom_price_minor = 999",
            (subscribers + 2) / 3,
        ),
        (
            "SELECT count(*) FROM subscription_payments WHERE status = 'completed'",
            2 * subscribers,
        ),
        (
            "SELECT count(*) FROM subscription_payments WHERE paid_at IN ('2019-03-04T10:00Z', '2019-04-04T10:00Z')",
            2 * subscribers,
        ),
    ] {
        assert_eq!(import.service.count(sql).await, expected, "{sql}");
    }
    let path = "/subscriptions?external_user_id=customer-7";
    let subscription = api.get_json(path).await["data"][0].clone();
    assert_eq!(subscription["user_id"], known.user());
    assert_eq!(subscription["starts_at"], "2019-03-04T10:00:00.000000Z");
    assert_eq!(subscription["price"], json!(49.0));
    assert_eq!(subscription["status"], "past_due");
    let payments = api.get_json("/payments?external_user_id=customer-7").await;
    let payments = payments["data"].as_array().unwrap().iter();
    let payments: Vec<&Value> = payments.map(|one| &one["external_payment_id"]).collect();
    assert_eq!(payments, ["p-7-3", "p-7-4"], "oldest first");
}

/// Formats a number with a comma for each thousand.
fn group(number: i64) -> String {
    match number / 1_000 {
        0 => number.to_string(),
        thousands => format!("{thousands},{:03}", number % 1_000),
    }
}

#[tokio::test]
async fn import_waits_for_the_rate_limit() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_RATE_PER_CLIENT", "5".to_owned());
    });
    let import = ImportFixture::start(service.await, 6).await;
    let printed = assert_success(import.command().output().unwrap());
    assert!(printed.contains("/payments: 12 of 12"), "{printed}");
    let server: &Server = &import.service.server;
    let rejected = server.metric("perennial_shed_total{by=\"client").await;
    assert!(rejected.is_some_and(|count| count > 0.0), "{rejected:?}");
}

#[tokio::test]
async fn import_reports_what_cannot_be_imported() {
    let import = ImportFixture::start(Service::start().await, 2).await;
    let line =
        r#"{"id": "x", "subscriptions": [{"id": "s-x", "plan": "missing", "status": "active"}]}"#;
    std::fs::write(import.file.path(), format!("{line}\n")).unwrap();
    let output = import.command().output().unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("subscription_plan_slug"), "{errors}");
}
