//! What a request to change a subscription asks for, as the auditor sees it.

use jiff::{SignedDuration, Timestamp};
use perennial_auditor::Verb;
use serde_json::Value;

use crate::lifecycle::audit::{instant, status, terms};

/// Returns what a request asks for. Fields equal to what is shown are left out.
pub fn requested_verbs(body: &Value, before: &Value, after: &Value, plans: &[Value]) -> Vec<Verb> {
    let differs = |name: &str| !body[name].is_null() && body[name] != before[name];
    let date = |name: &str| {
        let sent = instant(&body[name]).filter(|sent| Some(*sent) != instant(&before[name]));
        sent.map(Timestamp::as_microsecond)
    };
    let terms = terms(after);
    let (renews_at, ends_at) = (date("renews_at"), date("ends_at"));
    let mut verbs = Vec::new();
    let starts_at = date("starts_at");
    verbs.extend(starts_at.map(|starts_at| Verb::SetStart { starts_at }));
    if differs("subscription_plan_id") || differs("quantity") {
        verbs.push(Verb::ChangeTerms { terms });
    } else if body["price"].is_number() {
        verbs.push(Verb::SetPrice { terms });
    }
    if differs("status") {
        let starts_trial = body["status"] == "on_trial" && before["status"] == "pending";
        let trial_end = starts_trial.then(|| trial_end(after, plans));
        verbs.push(Verb::SetStatus {
            status: status(&body["status"]),
            renews_at: renews_at.or(trial_end),
            ends_at,
        });
    } else {
        verbs.extend(renews_at.map(|renews_at| Verb::Extend { renews_at }));
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

/// Returns when a trial ends that starts with the subscription, by the days of its plan.
fn trial_end(view: &Value, plans: &[Value]) -> i64 {
    let id = &view["subscription_plan_id"];
    let plan = plans.iter().find(|plan| plan["id"] == *id).unwrap();
    let start = instant(&view["starts_at"]).unwrap();
    let end = start + SignedDuration::from_hours(24 * plan["trial_days"].as_i64().unwrap());
    end.as_microsecond()
}
