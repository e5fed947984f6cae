//! What a request to change a subscription asks for, as the auditor sees it.

use jiff::Timestamp;
use perennial_auditor::Verb;
use serde_json::Value;

use crate::lifecycle::audit::{instant, status, terms};

/// Returns what a request asks for. Fields equal to what is shown are left out.
pub fn requested_verbs(body: &Value, before: &Value, after: &Value, trial_days: u16) -> Vec<Verb> {
    let differs = |name: &str| !body[name].is_null() && body[name] != before[name];
    let date = |name: &str| {
        let sent = instant(&body[name]).filter(|sent| Some(*sent) != instant(&before[name]));
        sent.map(Timestamp::as_microsecond)
    };
    let terms = terms(after);
    let ends_at = date("ends_at");
    let mut verbs = Vec::new();
    let starts_at = date("starts_at");
    verbs.extend(starts_at.map(|starts_at| Verb::SetStart { starts_at }));
    if differs("subscription_plan_id") || differs("quantity") {
        verbs.push(Verb::ChangeTerms { terms, trial_days });
    } else if body["price"].is_number() {
        verbs.push(Verb::SetPrice { terms });
    }
    verbs.extend(date("free_until").map(|until| Verb::FreeUntil { until }));
    if differs("status") {
        verbs.push(Verb::SetStatus {
            status: status(&body["status"]),
            ends_at,
        });
    } else {
        let ends_at = ends_at.map(Some);
        verbs.extend(ends_at.map(|ends_at| Verb::SetEnd { ends_at }));
    }
    if body["is_active"].is_boolean() {
        let is_suspended = after["suspended"] == true;
        verbs.push(if is_suspended {
            Verb::Suspend
        } else {
            Verb::Unsuspend
        });
    }
    verbs
}
