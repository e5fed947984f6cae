//! The upgrade from counted prepaid periods to credit: no subscription gains or loses covered time.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use perennial_domain::BillingCycle;
use serde_json::{Value, json};

use super::{
    at,
    audit::{instant, minor_units, read_ledger},
};
use crate::{
    harness::{
        api::ApiClient,
        client::create_client,
        database::Database,
        in_process::InProcessServer,
        process::{run_ok, sandbox},
    },
    upgrade::migrated_database,
};

/// The last migration of the schema that counted prepaid periods.
const BEFORE: i32 = 18;
const NOW: &str = "2027-03-10T00:00:00Z";

const ROWS: &str = "
    INSERT INTO instance (mode) VALUES ('sandbox');
    INSERT INTO tenants (tenant_id, name, cell, default_currency, created_at, lifecycle, lifecycle_since)
    VALUES (md5('t')::uuid, 't', 'home', 'USD', '2026-01-01Z', 'managed', '2026-01-01Z');
    INSERT INTO users (tenant_id, id, email, email_key, created_at)
    VALUES (md5('t')::uuid, md5('u')::uuid, 'ada@example.com', 'ada@example.com', '2026-01-01Z');
    INSERT INTO subscription_plans (tenant_id, id, slug, name, price_minor, currency, billing_cycle, variants, node_quota,
        most_popular, tier, is_active, created_at, updated_at)
    SELECT md5('t')::uuid, md5(cycle)::uuid, cycle, 'Pro', 2000, 'USD', cycle, '{}', 0, false, 0, true, '2026-01-01Z', '2026-01-01Z'
    FROM unnest('{daily,weekly,monthly,quarterly,yearly,lifetime}'::text[]) AS cycle;";

/// A subscription of the schema before, whose plan costs 20.00 per cycle.
struct Row {
    name: &'static str,
    status: &'static str,
    cycle: &'static str,
    plan_cycle: &'static str,
    anchor: &'static str,
    renews_at: Option<&'static str>,
    ends_at: Option<&'static str>,
    late_since: Option<&'static str>,
    external_id: Option<&'static str>,
    prepaid: i32,
}

/// A monthly subscription that renews on the last day of the month.
const MONTHLY: Row = Row {
    name: "",
    status: "active",
    cycle: "monthly",
    plan_cycle: "monthly",
    anchor: "2027-01-31T09:30:00Z",
    renews_at: Some("2027-03-31T09:30:00Z"),
    ends_at: None,
    late_since: None,
    external_id: None,
    prepaid: 0,
};

#[rustfmt::skip]
const SUBSCRIPTIONS: &[Row] = &[
    Row { name: "pending", status: "pending", ..MONTHLY },
    Row { name: "trial", status: "on_trial", ..MONTHLY },
    Row { name: "trial 1", status: "on_trial", prepaid: 1, ..MONTHLY },
    Row { name: "active", ..MONTHLY },
    Row { name: "active 1", prepaid: 1, ..MONTHLY },
    Row { name: "active 3", prepaid: 3, ..MONTHLY },
    Row { name: "daily 5", cycle: "daily", plan_cycle: "daily", anchor: "2027-03-01T06:00:00Z",
        renews_at: Some("2027-03-10T06:00:00Z"), prepaid: 5, ..MONTHLY },
    Row { name: "weekly 2", cycle: "weekly", plan_cycle: "weekly", anchor: "2027-03-01T06:00:00Z",
        renews_at: Some("2027-03-15T06:00:00Z"), prepaid: 2, ..MONTHLY },
    Row { name: "yearly 1", cycle: "yearly", plan_cycle: "yearly", anchor: "2026-05-01T06:00:00Z",
        renews_at: Some("2027-05-01T06:00:00Z"), prepaid: 1, ..MONTHLY },
    Row { name: "overdue 2", anchor: "2027-02-09T00:00:00Z", renews_at: Some("2027-03-09T00:00:00Z"), prepaid: 2, ..MONTHLY },
    Row { name: "paused 2", status: "paused", prepaid: 2, ..MONTHLY },
    Row { name: "paused, passed 1", status: "paused", anchor: "2027-02-05T00:00:00Z",
        renews_at: Some("2027-03-05T00:00:00Z"), prepaid: 1, ..MONTHLY },
    Row { name: "past due", status: "past_due", anchor: "2027-02-05T00:00:00Z",
        renews_at: Some("2027-03-05T00:00:00Z"), late_since: Some("2027-03-05T00:00:00Z"), ..MONTHLY },
    Row { name: "unpaid", status: "unpaid", anchor: "2027-01-20T00:00:00Z",
        renews_at: Some("2027-02-20T00:00:00Z"), late_since: Some("2027-02-20T00:00:00Z"), ..MONTHLY },
    Row { name: "canceled", status: "cancelled", ends_at: Some("2027-03-31T09:30:00Z"), ..MONTHLY },
    Row { name: "canceled 2", status: "cancelled", ends_at: Some("2027-05-31T09:30:00Z"), prepaid: 2, ..MONTHLY },
    Row { name: "expired 1", status: "expired", ends_at: Some("2027-03-01T00:00:00Z"), prepaid: 1, ..MONTHLY },
    Row { name: "lifetime", cycle: "lifetime", plan_cycle: "lifetime", renews_at: None, ..MONTHLY },
    Row { name: "unpriced 2", cycle: "quarterly", renews_at: Some("2027-04-30T09:30:00Z"), prepaid: 2, ..MONTHLY },
    Row { name: "unpriced, unaligned 2", cycle: "quarterly", renews_at: Some("2027-03-31T09:30:00Z"), prepaid: 2, ..MONTHLY },
    Row { name: "unpriced, weekly 3", cycle: "weekly", prepaid: 3, ..MONTHLY },
    Row { name: "external 1", external_id: Some("sub_42"), prepaid: 1, ..MONTHLY },
];

impl Row {
    fn is_priced(&self) -> bool {
        self.cycle == self.plan_cycle
    }

    fn is_managed(&self) -> bool {
        self.is_priced() && self.external_id.is_none()
    }

    /// Returns the starts of the prepaid periods, and the end of the last one.
    fn covered(&self) -> Vec<Timestamp> {
        let Some(renewal) = self.renews_at.map(at) else {
            return Vec::new();
        };
        let cycle: BillingCycle = self.cycle.parse().unwrap();
        let next = |from: &Timestamp| cycle.next_renewal(at(self.anchor), *from);
        let count = usize::try_from(self.prepaid).unwrap() + 1;
        std::iter::successors(Some(renewal), next)
            .take(count)
            .collect()
    }

    /// Returns the SQL that inserts the subscription and a payment of 20.00 or 25.00 for each prepaid period.
    fn insert(&self) -> String {
        let Self {
            name,
            status,
            cycle,
            plan_cycle,
            anchor,
            prepaid,
            ..
        } = self;
        let literal =
            |value: Option<&str>| value.map_or("NULL".to_owned(), |value| format!("'{value}'"));
        let [renews_at, ends_at, late_since, external_id] = [
            self.renews_at,
            self.ends_at,
            self.late_since,
            self.external_id,
        ]
        .map(literal);
        let starts: Vec<String> = self
            .covered()
            .iter()
            .map(|start| format!("'{start}'::timestamptz"))
            .collect();
        let starts = starts.join(", ");
        format!(
            "INSERT INTO subscriptions (tenant_id, id, user_id, plan_id, price_minor, currency, plan_billing_cycle,
                billing_cycle, status, suspended, starts_at, renews_at, ends_at, anchor, late_since, external_id, prepaid,
                created_at, updated_at)
             VALUES (md5('t')::uuid, md5('{name}')::uuid, md5('u')::uuid, md5('{plan_cycle}')::uuid, 2000, 'USD', '{plan_cycle}',
                '{cycle}', '{status}', false, '{anchor}', {renews_at}, {ends_at}, '{anchor}', {late_since}, {external_id}, {prepaid},
                '{anchor}', '{anchor}');
             INSERT INTO subscription_payments (tenant_id, id, subscription_id, amount_minor, currency, status, refunded_minor,
                period, created_at, updated_at)
             SELECT md5('t')::uuid, md5('{name}' || n)::uuid, md5('{name}')::uuid, 2000 + n % 2 * 500, 'USD', 'completed', 0, start,
                '2027-03-01Z', '2027-03-01Z'
             FROM unnest(ARRAY[{starts}]::timestamptz[]) WITH ORDINALITY AS periods (start, n) WHERE n <= {prepaid};"
        )
    }
}

struct Upgraded {
    server: Arc<InProcessServer>,
    api: ApiClient,
    database: Database,
}

impl Upgraded {
    /// Migrates a database of the schema before and starts the API on it.
    async fn start() -> Self {
        let inserts: String = SUBSCRIPTIONS.iter().map(Row::insert).collect();
        let rows = format!("{ROWS}{inserts}");
        let database = migrated_database(BEFORE, &[(BEFORE, &rows)]).await;
        let variables = sandbox(&database.url);
        run_ok(&variables, &["migrate"]);
        let server = Arc::new(InProcessServer::start_at(&variables, at(NOW)).await);
        let (_, client) = create_client(&database.url, &[]);
        let api = ApiClient::in_process(server.clone()).with("client-id", &client);
        Self {
            server,
            api,
            database,
        }
    }

    async fn id(&self, prefix: &str, seed: &str) -> String {
        let client = self.database.connect().await;
        let row = client.query_one("SELECT md5($1)", &[&seed]).await.unwrap();
        format!("{prefix}_{}", row.get::<_, String>(0))
    }

    async fn read(&self, name: &str) -> Value {
        let id = self.id("sub", name).await;
        self.api.get_json(&format!("/subscriptions/{id}")).await
    }

    async fn work_at(&self, now: Timestamp) {
        self.server.set_time(now);
        self.server.catch_up().await;
    }

    /// Asserts that the credit is the sum of the ledger, entry by entry.
    async fn assert_ledger(&self, name: &str, view: &Value) -> Vec<Value> {
        let entries = read_ledger(&self.api, view).await;
        let mut credit = 0;
        for entry in &entries {
            credit += minor_units(&entry["amount"]);
            assert_eq!(
                minor_units(&entry["credit_after"]),
                credit,
                "{name}: {entries:#?}"
            );
        }
        if !view["credit"].is_null() {
            assert_eq!(minor_units(&view["credit"]), credit, "{name}: {entries:#?}");
        }
        entries
    }
}

#[tokio::test]
async fn prepaid_periods_become_credit() {
    let upgraded = Upgraded::start().await;
    // Before and after the service has started to manage them.
    for round in ["migrated", "managed"] {
        if round == "managed" {
            upgraded.work_at(at("2027-03-10T00:00:01Z")).await;
        }
        for row in SUBSCRIPTIONS {
            let name = row.name;
            let view = upgraded.read(name).await;
            let covered = row.covered();
            let entries = upgraded.assert_ledger(name, &view).await;
            let payments = entries.iter().filter(|entry| entry["type"] == "payment");
            let renewed = entries
                .iter()
                .filter(|entry| entry["type"] == "period")
                .count();
            if row.is_priced() {
                for payment in payments.clone() {
                    assert_eq!(minor_units(&payment["amount"]), 2_000, "{name}: {payment}");
                    assert!(payment["payment_id"].is_string(), "{name}: {payment}");
                }
                assert_eq!(payments.count(), covered.len().saturating_sub(1), "{name}");
                let renewals = instant(&view["renews_at"]).into_iter().collect::<Vec<_>>();
                let expected = covered
                    .get(renewed)
                    .copied()
                    .filter(|_| row.status != "pending");
                assert!(
                    row.status == "pending" || renewals.first() == expected.as_ref(),
                    "{name}: {view}"
                );
            } else {
                assert_eq!(
                    instant(&view["renews_at"]).as_ref(),
                    covered.last(),
                    "{name}: {view}"
                );
                assert_eq!(view["lifecycle"], "recorded", "{name}");
            }
            if row.is_managed() && row.status != "pending" {
                assert_eq!(
                    instant(&view["paid_until"]).as_ref(),
                    covered.last(),
                    "{name}: {view}"
                );
                assert_eq!(view["lifecycle"], "managed", "{name}");
            }
            if renewed == 0 {
                assert_eq!(view["status"], row.status, "{name}");
            }
        }
    }
    let canceled = upgraded.read("canceled 2").await;
    assert_eq!(canceled["ends_at"], "2027-05-31T09:30:00.000000Z");
}

/// Each subscription renews as often as it was prepaid, then becomes past due or ends.
#[tokio::test]
async fn prepaid_subscriptions_renew_as_often_as_before() {
    let upgraded = Upgraded::start().await;
    let rows: Vec<&Row> = SUBSCRIPTIONS
        .iter()
        .filter(|row| row.is_managed())
        .collect();
    let runs_on =
        |row: &Row| ["active", "on_trial"].contains(&row.status) && row.cycle != "lifetime";
    let mut instants: BTreeMap<Timestamp, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| runs_on(row)) {
        for instant in row.covered() {
            instants.entry(instant).or_default().push(row);
        }
    }
    let tick = jiff::SignedDuration::from_micros(1);
    for (instant, rows) in instants
        .into_iter()
        .filter(|(instant, _)| *instant > at(NOW))
    {
        for now in [instant - tick, instant] {
            upgraded.work_at(now).await;
            for row in &rows {
                let view = upgraded.read(row.name).await;
                let ended = row.covered().last() <= Some(&now);
                let paid = if ended {
                    "past_due"
                } else {
                    view["status"].as_str().unwrap()
                };
                assert!(
                    ["active", "on_trial", "past_due"].contains(&paid),
                    "{}: {view}",
                    row.name
                );
                assert_eq!(
                    view["status"] == "past_due",
                    ended,
                    "{} at {now}: {view}",
                    row.name
                );
                assert_eq!(view["is_active"], true, "{} at {now}: {view}", row.name);
                upgraded.assert_ledger(row.name, &view).await;
            }
        }
    }
    upgraded.work_at(at("2029-01-01T00:00:00Z")).await;
    for row in rows {
        let view = upgraded.read(row.name).await;
        let entries = upgraded.assert_ledger(row.name, &view).await;
        let renewals = entries
            .iter()
            .filter(|entry| entry["type"] == "period")
            .count();
        let expected = match row.status {
            "active" | "on_trial" | "cancelled" => usize::try_from(row.prepaid).unwrap(),
            _ => 0,
        };
        // A canceled subscription ends where its prepaid time does.
        assert_eq!(renewals, expected, "{}: {entries:#?}", row.name);
        let expected = match (row.status, row.cycle) {
            ("paused", _) => "paused",
            (_, "lifetime") => "active",
            _ => "expired",
        };
        assert_eq!(view["status"], expected, "{}: {view}", row.name);
    }
    let canceled = upgraded.read("canceled 2").await;
    assert_eq!(canceled["ends_at"], "2027-05-31T09:30:00.000000Z");
    // Prepaid time that was not used while paused is used after it.
    let paused = upgraded.read("paused 2").await;
    let id = paused["id"].as_str().unwrap();
    let resumed = upgraded
        .api
        .put(&format!("/subscriptions/{id}"), r#"{"status": "active"}"#)
        .await;
    let resumed = resumed.json();
    assert_eq!(
        (&resumed["status"], &resumed["paid_until"]),
        (&json!("active"), &json!("2029-03-01T00:00:00.000000Z")),
        "{resumed}"
    );
}

/// A payment of 25.00 brought one period's price of 20.00. A refund takes no more, and a won dispute or a
/// smaller refund returns no more.
#[tokio::test]
async fn refund_of_a_prepaid_period_takes_its_price() {
    let upgraded = Upgraded::start().await;
    upgraded.work_at(at("2027-03-10T00:00:01Z")).await;
    let payment = async |number: i32, body: Value| {
        let id = upgraded.id("pay", &format!("active 3{number}")).await;
        let path = format!("/subscription-payments/{id}");
        let response = upgraded.api.put(&path, &body.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text);
        let view = upgraded.read("active 3").await;
        upgraded.assert_ledger("active 3", &view).await;
        minor_units(&view["credit"])
    };
    assert_eq!(payment(3, json!({"status": "refunded"})).await, 4_000);
    assert_eq!(payment(2, json!({"status": "disputed"})).await, 2_000);
    assert_eq!(payment(2, json!({"status": "completed"})).await, 4_000);
    assert_eq!(payment(1, json!({"status": "disputed"})).await, 2_000);
    assert_eq!(payment(1, json!({"status": "completed"})).await, 4_000);
    let partial = |amount| json!({"status": "partially_refunded", "refunded_amount": amount});
    assert_eq!(payment(1, partial(5)).await, 4_000);
    assert_eq!(payment(1, partial(10)).await, 3_500);
    assert_eq!(payment(1, partial(1)).await, 4_000);
    let credit = payment(1, json!({"status": "refunded"})).await;
    assert_eq!(credit, 2_000);
}
