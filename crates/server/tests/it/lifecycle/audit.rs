//! Converts the API's records to the history that the auditor checks.

use jiff::Timestamp;
use perennial_auditor::{
    Call, Cycle, Dunning, Entry, EntryKind, History, Probe, Status, Terms, Verb, Violation,
};
use serde_json::Value;

use crate::{harness::api::ApiClient, subscriptions::record_path};

/// Longest time in microseconds from the change of a payment to its ledger entry.
const MAX_PAYMENT_DELAY: i64 = 900_000;

/// What a test has recorded about one subscription.
pub struct Audit {
    pub history: History,
}

impl Audit {
    /// Starts an empty history with the default settings of a tenant.
    pub fn new() -> Self {
        Self {
            history: History {
                dunning: Dunning {
                    unpaid_after_days: 7,
                    expired_after_days: 30,
                },
                calls: Vec::new(),
                entries: Vec::new(),
                probes: Vec::new(),
            },
        }
    }

    pub fn call(&mut self, at: Timestamp, verb: Verb) {
        self.request(at, vec![verb]);
    }

    /// Records what one request asked for.
    pub fn request(&mut self, at: Timestamp, verbs: Vec<Verb>) {
        let calls = verbs.into_iter().enumerate().map(|(index, verb)| Call {
            at: at.as_microsecond(),
            verb,
            is_same_request: index > 0,
        });
        self.history.calls.extend(calls);
    }

    /// Records a read of the subscription.
    pub fn probe(&mut self, at: Timestamp, view: &Value) {
        self.history.probes.push(Probe {
            at: at.as_microsecond(),
            access: view["is_active"].as_bool().unwrap(),
            status: status(&view["status"]),
            suspended: view["suspended"].as_bool().unwrap(),
            credit: minor_units(&view["credit"]),
            starts_at: micros(&view["starts_at"]).unwrap(),
            renews_at: micros(&view["renews_at"]),
            ends_at: micros(&view["ends_at"]),
            terms: terms(view),
        });
    }

    /// Reads the whole ledger.
    pub async fn read_ledger(&mut self, api: &ApiClient, subscription: &Value) {
        let entries = read_ledger(api, subscription).await;
        self.history.entries = entries.iter().map(entry).collect();
        for call in &mut self.history.calls {
            // A payment takes effect just after its own change, when the subscription is free.
            let (Verb::Pay { payment, .. }
            | Verb::Refund { payment, .. }
            | Verb::Dispute { payment }
            | Verb::WinDispute { payment }) = call.verb
            else {
                continue;
            };
            let window = call.at..call.at + MAX_PAYMENT_DELAY;
            let posted = self
                .history
                .entries
                .iter()
                .find(|entry| entry.payment == Some(payment) && window.contains(&entry.at));
            call.at = posted.map_or(call.at, |entry| entry.at);
        }
    }

    /// Checks the money and access laws.
    pub fn check(&self) -> Result<(), Violation> {
        self.history.check_money()?;
        self.history.check_access()
    }
}

/// Returns all entries of a subscription's ledger, oldest first.
pub async fn read_ledger(api: &ApiClient, subscription: &Value) -> Vec<Value> {
    let path = format!("{}/ledger", record_path(subscription));
    api.list_all(&path, "", 100).await
}

/// Returns an amount of a currency with two decimals in minor units.
pub fn minor_units(amount: &Value) -> i64 {
    let amount = amount.as_f64().unwrap_or_else(|| panic!("{amount}"));
    (amount * 100.0).round() as i64
}

/// Returns the identifier without its prefix.
pub fn id_number(id: &Value) -> u128 {
    let (_, hex) = id.as_str().unwrap().rsplit_once('_').unwrap();
    u128::from_str_radix(hex, 16).unwrap()
}

pub fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str().map(|text| text.parse().unwrap())
}

pub fn micros(value: &Value) -> Option<i64> {
    instant(value).map(Timestamp::as_microsecond)
}

/// Returns the terms that a subscription shows.
pub fn terms(view: &Value) -> Terms {
    Terms {
        plan: id_number(&view["subscription_plan_id"]),
        quantity: u32::try_from(view["quantity"].as_u64().unwrap()).unwrap(),
        price: minor_units(&view["price"]),
        cycle: cycle(&view["billing_cycle"]),
    }
}

fn cycle(name: &Value) -> Cycle {
    match name.as_str().unwrap() {
        "daily" => Cycle::Daily,
        "weekly" => Cycle::Weekly,
        "monthly" => Cycle::Monthly,
        "quarterly" => Cycle::Quarterly,
        "semiannual" => Cycle::Semiannual,
        "yearly" => Cycle::Yearly,
        "lifetime" => Cycle::Lifetime,
        other => panic!("{other}"),
    }
}

pub fn status(name: &Value) -> Status {
    match name.as_str().unwrap() {
        "pending" => Status::Pending,
        "on_trial" => Status::OnTrial,
        "active" => Status::Active,
        "paused" => Status::Paused,
        "past_due" => Status::PastDue,
        "unpaid" => Status::Unpaid,
        "cancelled" => Status::Cancelled,
        "expired" => Status::Expired,
        other => panic!("{other}"),
    }
}

fn entry(view: &Value) -> Entry {
    let kind = match view["type"].as_str().unwrap() {
        "payment" => EntryKind::Payment,
        "refund" => EntryKind::Refund,
        "period" => EntryKind::Period,
        "change" => EntryKind::Change,
        "waiver" => EntryKind::Waiver,
        "extension" => EntryKind::Extension,
        other => panic!("{other}"),
    };
    let start = micros(&view["period_starts_at"]);
    Entry {
        at: micros(&view["at"]).unwrap(),
        kind,
        amount: minor_units(&view["amount"]),
        credit_after: minor_units(&view["credit_after"]),
        payment: view["payment_id"]
            .is_string()
            .then(|| id_number(&view["payment_id"])),
        period: start.map(|start| (start, micros(&view["period_ends_at"]))),
        plan: id_number(&view["subscription_plan_id"]),
        quantity: u32::try_from(view["quantity"].as_u64().unwrap()).unwrap(),
    }
}
