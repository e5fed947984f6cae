//! One simulated subscriber: its calls, and which of them the auditor receives.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use perennial_auditor::Verb;
use serde_json::{Value, json};

use super::{SplitMix64, World, request::requested_verbs};
use crate::{
    harness::api::ApiClient,
    lifecycle::audit::{Audit, id_number, instant, micros, minor_units, status, terms},
    subscriptions::record_path,
};

const TICK: SignedDuration = SignedDuration::from_micros(1);

/// One subscription of a subscriber.
pub struct Record {
    pub audit: Audit,
    /// Every call with its response status.
    pub log: Vec<String>,
    /// The subscription as it was last shown.
    subscription: Option<Value>,
    payments: Vec<Value>,
}

impl Record {
    fn new() -> Self {
        Self {
            audit: Audit::new(),
            log: Vec::new(),
            subscription: None,
            payments: Vec::new(),
        }
    }
}

pub struct Subscriber {
    pub seed: u64,
    /// Subscriptions that ended before the present one was created.
    pub past: Vec<Record>,
    pub record: Record,
    random: SplitMix64,
    user: Value,
    /// The plans of which the user has had a trial.
    trials: BTreeSet<String>,
    /// When to read the subscription.
    instants: BTreeSet<Timestamp>,
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

impl Subscriber {
    pub fn new(seed: u64, user: Value) -> Self {
        Self {
            seed,
            past: Vec::new(),
            record: Record::new(),
            random: SplitMix64(seed),
            user,
            trials: BTreeSet::new(),
            instants: BTreeSet::new(),
        }
    }

    /// Returns the next instant at which to read the subscription, if it is before `limit`. Forgets
    /// those that have passed.
    pub fn next_instant(&mut self, limit: Timestamp) -> Option<Timestamp> {
        let last = self
            .record
            .audit
            .history
            .probes
            .last()
            .map(|probe| probe.at);
        self.instants
            .retain(|at| last.is_none_or(|last| at.as_microsecond() > last));
        self.instants.first().copied().filter(|at| *at < limit)
    }

    /// Returns whether the subscription is to be read at `at`, and forgets the instant.
    pub fn take_instant(&mut self, at: Timestamp) -> bool {
        self.instants.remove(&at)
    }

    /// Reads the subscription, and notes the instants at which it will change.
    pub async fn probe(&mut self, api: &ApiClient, now: Timestamp) {
        let Some(subscription) = &self.record.subscription else {
            return;
        };
        let view = api.get_json(&record_path(subscription)).await;
        self.record.audit.probe(now, &view);
        let dates = [
            "starts_at",
            "renews_at",
            "ends_at",
            "current_period_ends_at",
            "created_at",
        ];
        for date in dates.iter().filter_map(|name| instant(&view[*name])) {
            for later in [0, 7, 30].map(|later| date + days(later)) {
                let around = [later - TICK, later, later + TICK];
                self.instants
                    .extend(around.into_iter().filter(|at| *at > now));
            }
        }
        self.record.subscription = Some(view);
    }

    /// Makes a random call, or none.
    pub async fn act(&mut self, world: &World, now: Timestamp, workers_lag: bool) {
        let World { api, plans, .. } = world;
        let Some(subscription) = &self.record.subscription else {
            return self.subscribe(api, plans, now).await;
        };
        if subscription["status"] == "expired" && !workers_lag && self.random.below(12) == 0 {
            let ended = std::mem::replace(&mut self.record, Record::new());
            self.past.push(ended);
            self.instants.clear();
            return;
        }
        match self.random.below(16) {
            0..=4 => self.pay(api, now).await,
            5 => self.change_payment(api, now).await,
            6..=8 => self.change_subscription(world, now).await,
            _ => {}
        }
    }

    fn later(&mut self, now: Timestamp, most: u64) -> Timestamp {
        now + SignedDuration::from_hours(1 + self.random.below(24 * most) as i64)
    }

    async fn subscribe(&mut self, api: &ApiClient, plans: &[Value], now: Timestamp) {
        let plan = &plans[self.random.below(plans.len() as u64) as usize];
        let mut fields = json!({"user_id": self.user["id"], "subscription_plan_id": plan["id"]});
        let statuses = [
            "",
            "",
            "pending",
            "on_trial",
            "active",
            "active",
            "paused",
            "cancelled",
            "expired",
            "past_due",
        ];
        let status_sent = self.random.pick(&statuses);
        if !status_sent.is_empty() {
            fields["status"] = json!(status_sent);
        }
        match self.random.below(6) {
            0 => fields["starts_at"] = json!(self.later(now, 30).to_string()),
            1 => fields["starts_at"] = json!((now - days(1) - self.random.hours(90)).to_string()),
            2 => fields["renews_at"] = json!(self.later(now, 60).to_string()),
            _ => {}
        }
        if self.random.below(3) == 0 {
            fields["quantity"] = json!(1 + self.random.below(5));
        }
        if self.random.below(4) == 0 {
            fields["price"] = json!(self.random.below(30));
        }
        let response = api.post("/subscriptions", &fields.to_string()).await;
        self.log(now, &fields, response.status);
        if response.status != 201 {
            assert_eq!(response.status, 422, "{}", response.text);
            return;
        }
        let view = response.json();
        // A trial that is asked for may repeat an earlier one.
        let plan_id = plan["id"].as_str().unwrap();
        let has_trial = fields["status"].is_string() || !self.trials.contains(plan_id);
        let trial_days = plan["trial_days"].as_u64().filter(|_| has_trial);
        let trial_days = u16::try_from(trial_days.unwrap_or(0)).unwrap();
        if view["status"] == "on_trial" {
            self.trials.insert(plan_id.to_owned());
        }
        let verb = Verb::Create {
            status: fields.get("status").map(status),
            starts_at: micros(&fields["starts_at"]),
            renews_at: micros(&fields["renews_at"]),
            ends_at: micros(&fields["ends_at"]),
            trial_days,
            terms: terms(&view),
        };
        self.record.audit.call(now, verb);
        self.record.subscription = Some(view);
    }

    async fn pay(&mut self, api: &ApiClient, now: Timestamp) {
        let subscription = self.record.subscription.as_ref().unwrap();
        let price = minor_units(&subscription["price"]);
        let due = minor_units(&subscription["amount_due"]);
        let quantity = subscription["quantity"].as_i64().unwrap();
        let choices = [
            due,
            price * quantity,
            price * quantity,
            price * quantity * 3,
            700,
            0,
        ];
        let amount = self.random.pick(&choices);
        let statuses = [
            "completed",
            "completed",
            "completed",
            "completed",
            "completed",
            "completed",
            "pending",
            "refunded",
            "failed",
            "disputed",
        ];
        let status = self.random.pick(&statuses);
        let currency = if self.random.below(30) == 0 {
            "EUR"
        } else {
            "USD"
        };
        let fields = json!({"subscription_id": subscription["id"], "amount": amount as f64 / 100.0, "currency": currency, "status": status});
        let response = api
            .post("/subscription-payments", &fields.to_string())
            .await;
        self.log(now, &fields, response.status);
        assert_eq!(response.status, 201, "{}", response.text);
        let payment = response.json();
        if status == "completed" {
            self.record_payment(&payment, now);
        } else if status == "disputed" && currency == "USD" && minor_units(&payment["amount"]) > 0 {
            let amount = minor_units(&payment["amount"]);
            let payment = id_number(&payment["id"]);
            let verb = Verb::PayDisputed { payment, amount };
            self.record.audit.call(now, verb);
        }
        self.record.payments.push(payment);
    }

    /// Tells the auditor that a payment completed. Another currency or an amount of 0 is not posted.
    fn record_payment(&mut self, payment: &Value, now: Timestamp) {
        let amount = minor_units(&payment["amount"]);
        if payment["currency"] == "USD" && amount > 0 {
            let payment = id_number(&payment["id"]);
            self.record.audit.call(now, Verb::Pay { payment, amount });
        }
    }

    async fn change_payment(&mut self, api: &ApiClient, now: Timestamp) {
        if self.record.payments.is_empty() {
            return;
        }
        let index = self.random.below(self.record.payments.len() as u64) as usize;
        let before = self.record.payments[index].clone();
        let statuses = [
            "completed",
            "completed",
            "disputed",
            "disputed",
            "refunded",
            "partially_refunded",
        ];
        let mut body = json!({"status": self.random.pick(&statuses)});
        let amount = minor_units(&before["amount"]);
        if body["status"] == "partially_refunded" {
            let most = u64::try_from(amount).unwrap().max(1);
            let refunded = 1 + self.random.below(most) as i64;
            let refunded = refunded as f64 / 100.0;
            body["refunded_amount"] = json!(refunded);
        }
        let response = api.put(&record_path(&before), &body.to_string()).await;
        self.log(now, &json!([before["id"], body]), response.status);
        if response.status != 200 {
            assert!(
                [409, 422].contains(&response.status),
                "{body}: {}",
                response.text
            );
            return;
        }
        let after = response.json();
        self.record.payments[index] = after.clone();
        let (from, to) = (
            before["status"].as_str().unwrap(),
            after["status"].as_str().unwrap(),
        );
        let payment = id_number(&before["id"]);
        let refunded_total = minor_units(&after["refunded_amount"]);
        let is_posted = self
            .record
            .audit
            .history
            .calls
            .iter()
            .any(|call| match call.verb {
                Verb::Pay {
                    payment: posted, ..
                }
                | Verb::PayDisputed {
                    payment: posted, ..
                } => posted == payment,
                _ => false,
            });
        let verb = match (from, to) {
            ("pending" | "failed", "completed") => return self.record_payment(&after, now),
            ("refunded", "completed") if !is_posted => return self.record_payment(&after, now),
            _ if !is_posted => return,
            ("disputed", "completed") => Verb::WinDispute { payment },
            ("disputed", "refunded") => Verb::LoseDispute { payment },
            ("completed" | "partially_refunded", "disputed") => Verb::Dispute { payment },
            (_, "refunded" | "partially_refunded" | "completed") if before != after => {
                Verb::Refund {
                    payment,
                    refunded_total,
                }
            }
            _ => return,
        };
        self.record.audit.call(now, verb);
    }

    async fn change_subscription(&mut self, world: &World, now: Timestamp) {
        let World { api, plans } = world;
        let path = record_path(self.record.subscription.as_ref().unwrap());
        let before = api.get_json(&path).await;
        let statuses = [
            "paused",
            "paused",
            "active",
            "active",
            "active",
            "cancelled",
            "on_trial",
        ];
        let renewal = instant(&before["renews_at"]).map_or(now, |renewal| renewal.max(now));
        let plan = &plans[self.random.below(plans.len() as u64) as usize];
        let body = match self.random.below(22) {
            0..=7 => json!({"status": self.random.pick(&statuses)}),
            8 if self.random.below(3) == 0 => json!({"status": "expired"}),
            // The base API's body has the next renewal, which the service computes.
            9 => json!({"status": "active", "renews_at": self.later(now, 60).to_string()}),
            10 => json!({"status": "cancelled", "ends_at": self.later(now, 60).to_string()}),
            11 => json!({"is_active": before["is_active"] == false}),
            12 => json!({"free_until": self.later(renewal, 40).to_string()}),
            13 => json!({"price": self.random.below(30)}),
            14 | 15 => json!({"quantity": 1 + self.random.below(5)}),
            16 => json!({"ends_at": self.later(now, 60).to_string()}),
            17 => json!({"starts_at": self.later(now, 30).to_string()}),
            18 => {
                let status = self.random.pick(&statuses);
                json!({"subscription_plan_id": plan["id"], "status": status})
            }
            _ => json!({"subscription_plan_id": plan["id"]}),
        };
        let response = api.put(&path, &body.to_string()).await;
        self.log(now, &body, response.status);
        if response.status != 200 {
            assert!(
                [402, 409, 422].contains(&response.status),
                "{body}: {}",
                response.text
            );
            return;
        }
        let after = response.json();
        // Fields equal to what is shown change nothing.
        if after == before {
            return;
        }
        if body["status"] == "on_trial" {
            let plan = after["subscription_plan_id"].as_str().unwrap();
            self.trials.insert(plan.to_owned());
        }
        let plan = plans
            .iter()
            .find(|plan| plan["id"] == after["subscription_plan_id"]);
        let plan = plan.unwrap();
        let had_trial = self.trials.contains(plan["id"].as_str().unwrap());
        let trial_days = plan["trial_days"].as_u64().filter(|_| !had_trial);
        let trial_days = u16::try_from(trial_days.unwrap_or(0)).unwrap();
        let verbs = requested_verbs(&body, &before, &after, trial_days);
        self.record.audit.request(now, verbs);
    }

    fn log(&mut self, now: Timestamp, call: &Value, status: u16) {
        self.record.log.push(format!("{now} {status} {call}"));
    }

    /// Returns all subscriptions, the present one last.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.past.iter().chain([&self.record])
    }

    /// Reads the ledgers and checks the laws. Returns a description of each violation.
    pub async fn audit(&mut self, api: &ApiClient) -> Vec<String> {
        let mut violations = Vec::new();
        for record in self.past.iter_mut().chain([&mut self.record]) {
            let violation = record.audit(api).await;
            violations.extend(violation.map(|text| format!("seed {} {text}", self.seed)));
        }
        violations
    }
}

impl Record {
    /// Reads the ledger and checks the laws. Returns a description of a violation.
    async fn audit(&mut self, api: &ApiClient) -> Option<String> {
        let subscription = self.subscription.clone()?;
        self.audit.read_ledger(api, &subscription).await;
        let violation = self.audit.check().err()?;
        let at = Timestamp::from_microsecond(violation.at).unwrap();
        let time = |micros: i64| Timestamp::from_microsecond(micros).unwrap().to_string();
        let entries = self.audit.history.entries.iter().map(|entry| {
            let period = entry
                .period
                .map(|(start, end)| format!("{} to {:?}", time(start), end.map(time)));
            let (kind, amount, credit) = (entry.kind, entry.amount, entry.credit_after);
            format!(
                "{} {kind:?} {amount} = {credit} {period:?} x{}",
                time(entry.at),
                entry.quantity
            )
        });
        let probes = self.audit.history.probes.iter();
        let probes = probes.filter(|probe| (violation.at - probe.at).abs() < 86_400_000_000 * 3);
        let probes = probes.map(|probe| {
            let (at, status, credit, access) = (time(probe.at), probe.status, probe.credit, probe.access);
            let (renews_at, ends_at) = (probe.renews_at.map(time), probe.ends_at.map(time));
            format!("{at} {status:?} access {access} credit {credit} renews {renews_at:?} ends {ends_at:?}")
        });
        Some(format!(
            "at {at}: {violation}\n{}\nledger:\n{}\nreads:\n{}",
            self.log.join("\n"),
            entries.collect::<Vec<_>>().join("\n"),
            probes.collect::<Vec<_>>().join("\n")
        ))
    }
}
