//! Calls that the auditor cannot judge. They are left out of the simulation.

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::lifecycle::audit::{instant, minor_units};

/// What the API does not show of a subscription.
pub struct Stored {
    trial_ends_at: Option<Timestamp>,
    period_cycle: Option<String>,
    anchor: Timestamp,
    late_since: Option<Timestamp>,
}

impl Stored {
    pub async fn read(database: &Client, view: &Value) -> Self {
        let (_, id) = view["id"].as_str().unwrap().split_once('_').unwrap();
        let sql = format!(
            "SELECT trial_ends_at, period_cycle, anchor, late_since FROM subscriptions WHERE id = '{id}'"
        );
        let row = database.query_one(&sql, &[]).await.unwrap();
        Self {
            trial_ends_at: row.get(0),
            period_cycle: row.get(1),
            anchor: row.get(2),
            late_since: row.get(3),
        }
    }

    /// Returns whether the auditor can judge a PUT of `body` on the subscription that `view` shows.
    /// While the workers lag, `view` is not current, and only status changes without dates are judged.
    pub fn is_judged(
        &self,
        view: &Value,
        body: &Value,
        plan: Option<&Value>,
        (now, workers_lag): (Timestamp, bool),
    ) -> bool {
        let has_started = instant(&view["starts_at"]).unwrap() <= now;
        let in_trial = self.trial_ends_at.is_some_and(|end| end > now);
        let is_late = self.late_since.is_some();
        let is_bought_cycle = self
            .period_cycle
            .as_ref()
            .is_none_or(|cycle| view["billing_cycle"] == *cycle);
        let credit = minor_units(&view["credit"]);
        // Free terms renew, but not while a dispute is open: the auditor allows either.
        let is_free_with_debt = credit < 0 && minor_units(&view["price"]) == 0;
        // Without a charge, the ledger does not show whether a change started a new period.
        let month_end = now + jiff::SignedDuration::from_hours(24 * 28);
        let is_long_and_free = minor_units(&view["price"]) == 0
            && instant(&view["renews_at"]).is_some_and(|renewal| renewal > month_end);
        let has_dates = !body["renews_at"].is_null() || !body["ends_at"].is_null();
        match body["status"].as_str() {
            _ if workers_lag && (has_dates || body["status"].is_null()) => false,
            Some("active") if body["renews_at"].is_string() => {
                has_started && !in_trial && !is_free_with_debt
            }
            Some("active") => has_started || !in_trial,
            Some("cancelled") => has_started,
            Some("on_trial") => view["status"] == "pending" && !workers_lag,
            Some(_) => true,
            None if body["renews_at"].is_string() => has_started && !in_trial && !is_free_with_debt,
            None if body["price"] == 0 => credit >= 0,
            None if !body["quantity"].is_null() => is_bought_cycle && !is_long_and_free,
            None => plan.is_none_or(|plan| {
                let is_free = plan["price"] == 0.0 || plan["price"] == 0;
                let is_cycle_kept = plan["billing_cycle"] == view["billing_cycle"];
                let is_first_end_stated =
                    is_late && Some(self.anchor) > instant(&view["renews_at"]);
                !(is_free && (view["status"] == "pending" || credit < 0))
                    && (is_cycle_kept || !(is_first_end_stated || is_free && is_late))
                    && is_bought_cycle
                    && !is_long_and_free
            }),
        }
    }
}

/// Removes what the auditor cannot judge from a create request.
pub fn limit_creation(fields: &mut Value, plan: &Value, now: Timestamp) {
    let may_be_trial = plan["trial_days"] != 0 || fields["status"] == "on_trial";
    let is_past = instant(&fields["starts_at"]).is_some_and(|start| start < now);
    let remove = |fields: &mut Value, name: &str| {
        fields.as_object_mut().unwrap().remove(name);
    };
    if may_be_trial && is_past {
        remove(fields, "starts_at");
    }
    if fields["status"] == "cancelled" {
        let end = now + jiff::SignedDuration::from_hours(24 * 50);
        fields["ends_at"] = json!(end.to_string());
    }
    if fields["status"] == "paused" {
        remove(fields, "renews_at");
    }
}
