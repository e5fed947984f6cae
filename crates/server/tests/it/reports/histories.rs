//! Years of random requests by many customers of a managed and of a recorded tenant, while workers run, lag and are killed,
//! and the billing clock is set back. `tools/report-replay`, which reads only the event log, must compute the same figures as
//! the roll-ups have, also after a rebuild.
//!
//! `REPORT_HISTORIES` sets the number of customers and `REPORT_YEARS` the years; `just prove report-histories` uses 1,000 and 3. `SEED`
//! selects the random numbers.

mod customer;

use std::{
    collections::BTreeMap,
    process::{Command, Output},
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::changes::assert_changes_equal_reports;
use crate::{
    harness::{
        api::ApiClient,
        env_number,
        process::{Process, run_ok},
        service::{InProcessService, Service},
        wait_until,
    },
    lifecycle::simulation::SplitMix64,
};
use customer::{Customer, RequestCounts, SharedUser};

const START: &str = "2027-01-10T09:30:00Z";
/// How far the clock is set back at the end.
const SET_BACK: SignedDuration = SignedDuration::from_hours(24 * 75);
/// Customers that send requests at the same time.
const PARALLEL: usize = 4;
const MAX_WORKERS: usize = 2;

/// The names of the managed and of the recorded tenant.
const TENANTS: [&str; 2] = ["default", "recorded"];

/// Slug, price, currency, billing cycle and trial days.
const PLANS: [(&str, f64, &str, &str, i64); 15] = [
    ("free", 0.0, "USD", "monthly", 0),
    ("pro", 19.99, "USD", "monthly", 0),
    ("team", 49.5, "USD", "monthly", 14),
    ("weekly", 4.99, "USD", "weekly", 0),
    ("daily", 1.0, "USD", "daily", 3),
    ("yearly", 199.0, "USD", "yearly", 30),
    ("lifetime", 300.0, "USD", "lifetime", 0),
    ("lifetime-trial", 250.0, "USD", "lifetime", 7),
    ("euro", 9.9, "EUR", "monthly", 0),
    ("euro-quarterly", 27.0, "EUR", "quarterly", 0),
    ("euro-semiannual", 55.55, "EUR", "semiannual", 14),
    ("yen", 1_980.0, "JPY", "monthly", 0),
    ("yen-trial", 980.0, "JPY", "monthly", 7),
    ("yen-yearly", 19_800.0, "JPY", "yearly", 0),
    ("dinar", 5.125, "KWD", "monthly", 0),
];

/// A tenant with its plans.
struct Shop {
    api: ApiClient,
    plans: Vec<Value>,
    is_managed: bool,
}

struct Histories {
    service: InProcessService,
    database: Client,
    customers: Vec<Customer>,
    random: SplitMix64,
    /// Run the background tasks. Without one, they lag.
    workers: Vec<Process>,
    now: Timestamp,
}

impl Histories {
    async fn start(seed: u64, customers: u64) -> Self {
        let now: Timestamp = START.parse().unwrap();
        let service = Service::start_in_process_at(now).await;
        let database = service.database.connect().await;
        let managed = ["tenant", "set", "--lifecycle", "managed"];
        run_ok(&service.variables, &managed);
        let since = "UPDATE tenants SET lifecycle_since = '2020-01-01T00:00:00Z'";
        database.execute(since, &[]).await.unwrap();
        let create = ["tenant", "create", "--name", TENANTS[1]];
        run_ok(&service.variables, &create);
        let mut shops = Vec::new();
        for (tenant, is_managed) in TENANTS.into_iter().zip([true, false]) {
            let api = service.api(&["--tenant", tenant]);
            let mut plans = Vec::new();
            for (slug, price, currency, cycle, trial_days) in PLANS {
                let fields = json!({"name": slug, "slug": slug, "price": price, "currency": currency, "billing_cycle": cycle,
                    "trial_days": trial_days});
                plans.push(api.create("/subscription-plans", &fields).await);
            }
            let shop = Shop {
                api,
                plans,
                is_managed,
            };
            shops.push(Arc::new(shop));
        }
        // Customers 0 and 2 share a user, and so do 1 and 3. They act at the same time.
        let mut users: BTreeMap<_, SharedUser> = BTreeMap::new();
        let customers = (0..customers)
            .map(|number| {
                let user = users.entry((number / 4, number % 2)).or_default().clone();
                let shop = shops[number as usize % shops.len()].clone();
                Customer::new(seed * 1_000_003 + number, shop, user)
            })
            .collect();
        let mut histories = Self {
            service,
            database,
            customers,
            random: SplitMix64(seed),
            workers: Vec::new(),
            now,
        };
        histories.set_time(now).await;
        histories
    }

    /// Sets the clock of this process, and the one of the sandbox, which workers and commands use.
    async fn set_time(&mut self, now: Timestamp) {
        self.now = now;
        let ahead = now.as_microsecond() - Timestamp::now().as_microsecond();
        let sql = "UPDATE instance SET clock_ahead = $1";
        self.database.execute(sql, &[&ahead]).await.unwrap();
        self.service.server.set_time(now);
    }

    /// Starts or kills workers, or waits for them.
    async fn change_workers(&mut self) {
        match self.random.below(12) {
            // Dropping a process kills it.
            0 | 1 => self.workers.clear(),
            2 | 3 => self.start_worker(),
            4 => self.service.server.catch_up().await,
            5 => self.wait_for_rollup().await,
            _ => {}
        }
    }

    fn start_worker(&mut self) {
        if self.workers.len() < MAX_WORKERS {
            let worker = Process::spawn(&self.service.variables, &["work"]);
            self.workers.push(worker);
        }
    }

    async fn count(&self, sql: &str) -> i64 {
        let sql = sql.replace("$now", &format!("'{}'", self.now));
        self.database.query_one(&sql, &[]).await.unwrap().get(0)
    }

    /// Waits until no transition is due and the roll-ups have processed every change.
    async fn wait_for_rollup(&mut self) {
        if self.workers.is_empty() {
            self.start_worker();
        }
        self.service.server.catch_up().await;
        let limit = Duration::from_mins(5);
        wait_until("every change is rolled up", limit, async || {
            let changes = "SELECT count(*) FROM all_pending_revenue_changes WHERE at <= $now";
            let payments = "SELECT count(*) FROM payment_changes";
            self.count(changes).await == 0 && self.count(payments).await == 0
        })
        .await;
    }

    /// Lets several customers act at a time, each in its own order.
    async fn act(&mut self) {
        let mut parts: Vec<Vec<Customer>> = (0..PARALLEL).map(|_| Vec::new()).collect();
        for (index, customer) in self.customers.drain(..).enumerate() {
            parts[index % PARALLEL].push(customer);
        }
        let mut acting = JoinSet::new();
        for mut part in parts {
            let now = self.now;
            acting.spawn(async move {
                for customer in &mut part {
                    customer.act(now).await;
                }
                part
            });
        }
        self.customers = acting.join_all().await.into_iter().flatten().collect();
        self.customers.sort_by_key(|customer| customer.seed);
    }

    /// Moves the clock in steps of hours to weeks up to `end`. Customers act after each step.
    async fn run_until(&mut self, end: Timestamp) {
        while self.now < end {
            let hours = match self.random.below(20) {
                0 => 24 * 30,
                1 => 24 * 10,
                2..=8 => 24 * 4,
                9..=14 => 24,
                _ => 5,
            };
            let step = SignedDuration::from_secs(1 + self.random.below(3_600 * hours) as i64);
            let month = self.now.strftime("%B %Y").to_string();
            self.set_time(self.now + step).await;
            self.change_workers().await;
            self.act().await;
            if month != self.now.strftime("%B %Y").to_string() {
                println!("{month} is over, of the time until {end}");
            }
        }
    }

    /// Moves the clock to an instant at which nothing becomes due for a while, and waits for the roll-ups.
    async fn finish(&mut self, end: Timestamp) {
        let mut quiet = end;
        loop {
            self.set_time(quiet).await;
            self.service.server.catch_up().await;
            let soon = "SELECT count(*) FROM subscriptions, unnest(ARRAY[starts_at, ends_at, due_at]) AS date
                WHERE date BETWEEN $now AND $now::timestamptz + interval '15 minutes'";
            if self.count(soon).await == 0 {
                break;
            }
            quiet += SignedDuration::from_mins(20);
        }
        self.wait_for_rollup().await;
        self.workers.clear();
    }

    /// Returns a client of each tenant.
    fn apis(&self) -> Vec<ApiClient> {
        let shops = self.customers.iter().take(TENANTS.len());
        shops.map(|customer| customer.shop.api.clone()).collect()
    }

    /// Runs the replay of all tenants.
    fn replay(&self) -> Output {
        let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/report-replay");
        let now = self.now.to_string();
        Command::new(tool)
            .args(["--database", &self.service.database.url, "--now", &now])
            .output()
            .unwrap()
    }

    fn assert_replay_agrees(&self, when: &str) {
        let output = self.replay();
        let [out, errors] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        println!("{when}: {out}");
        assert!(output.status.success(), "{when}:\n{out}{errors}");
    }
}

#[tokio::test]
async fn rollups_equal_the_replay_of_random_histories() {
    let started = Instant::now();
    let seed = env_number("SEED").unwrap_or(1);
    let customers = env_number("REPORT_HISTORIES").unwrap_or(20);
    let years: i64 = env_number("REPORT_YEARS").unwrap_or(1);
    let mut histories = Histories::start(seed, customers).await;
    let end = histories.now + SignedDuration::from_hours(24 * 365 * years);
    histories.run_until(end).await;
    let end = histories.now;
    histories.finish(end + SignedDuration::from_mins(1)).await;
    histories.assert_replay_agrees("after the histories");
    // Reads each change several times, in small pages: with many histories only those of the last week.
    let first = match customers {
        0..=100 => START.parse().unwrap(),
        _ => histories.now - SignedDuration::from_hours(24 * 7),
    };
    let [from, to] = [first, histories.now].map(|at: Timestamp| at.strftime("%F").to_string());
    for api in histories.apis() {
        assert_changes_equal_reports(&api, &format!("from={from}&to={to}")).await;
    }

    // Records that were changed later than the new time keep their dates.
    let last = histories.now;
    histories.set_time(last - SET_BACK).await;
    histories.run_until(last).await;
    let end = histories.now.max(last) + SignedDuration::from_hours(24);
    histories.finish(end).await;
    histories.assert_replay_agrees("after the clock was set back");

    let counts = RequestCounts::sum(&histories.customers);
    println!(
        "seed {seed}, {customers} customers, {years} years: {counts:?}, {:.0?}",
        started.elapsed()
    );
    assert!(counts.accepted > counts.rejected, "{counts:?}");
    for (table, kinds) in [
        ("revenue_movements", 8),
        ("revenue_outcomes", 6),
        ("payments_daily", 6),
    ] {
        let sql = format!("SELECT count(DISTINCT kind) FROM {table}");
        assert_eq!(histories.count(&sql).await, kinds, "kinds in {table}");
    }
    // Seven more replays. With many histories, each takes minutes and shows the same.
    if customers <= 100 {
        assert_replay_finds_a_changed_row(&histories).await;
    }

    for tenant in TENANTS {
        for command in ["check", "rebuild", "check"] {
            let arguments = ["report", command, "--tenant", tenant];
            run_ok(&histories.service.variables, &arguments);
        }
    }
    histories.assert_replay_agrees("after the rebuild");
}

/// Changes one row of each roll-up by the least amount, which the replay must find.
async fn assert_replay_finds_a_changed_row(histories: &Histories) {
    for (table, figure) in [
        ("revenue_movements", "arr_minor"),
        ("revenue_movements", "users"),
        ("revenue_statuses", "subscriptions"),
        ("revenue_cohorts", "users"),
        ("revenue_outcomes", "subscriptions"),
        ("payments_daily", "amount_minor"),
    ] {
        let change = |sign: &str| {
            format!(
                "UPDATE {table} SET {figure} = {figure} {sign} 1 WHERE ctid = (SELECT ctid FROM {table}
                    WHERE generation = coalesce((SELECT generation FROM report_state
                        WHERE report_state.tenant_id = {table}.tenant_id), 0)
                    ORDER BY {table}::text LIMIT 1) RETURNING {table}::text"
            )
        };
        let transaction = &histories.database;
        let before = transaction.query(&change("+"), &[]).await.unwrap();
        assert_eq!(before.len(), 1, "{table} has no rows");
        let output = histories.replay();
        assert_eq!(output.status.code(), Some(1), "{table}.{figure}");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains(table), "{out}");
        let row: String = before[0].get(0);
        let undo = format!("UPDATE {table} SET {figure} = {figure} - 1 WHERE {table}::text = $1");
        let undone = transaction.execute(&undo, &[&row]).await.unwrap();
        assert_eq!(undone, 1, "{table}");
    }
    histories.assert_replay_agrees("after the changes were undone");
}
