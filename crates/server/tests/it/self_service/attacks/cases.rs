//! The cases: a name, the fields of the subscription, what happens before, the user's request, and its result.

use serde_json::{Value, json};

use super::{
    Case,
    Expected::{self, Becomes, Refused},
    Step::{Now, Pay, Server, Until, User},
};

const NOT_ALLOWED: Expected = Refused(409, "invalid_transition");
const NOT_FOR_USERS: Expected = Refused(403, "not_for_users");

const START: &str = "2027-01-01T12:00";
/// The first renewal.
const FEBRUARY: &str = "2027-02-01T12:00";
const JUNE: &str = "2027-06-01T12:00";
const MARCH_1: &str = "2027-03-01T12:00:00Z";

fn to(status: &str) -> Value {
    json!({"status": status})
}

fn cancel() -> Value {
    to("cancelled")
}

fn activate() -> Value {
    to("active")
}

fn plain() -> Value {
    json!({})
}

fn trial() -> Value {
    json!({"subscription_plan_slug": "trial", "status": "on_trial"})
}

/// Ends in June.
fn term() -> Value {
    json!({"ends_at": "2027-06-01T12:00:00Z"})
}

fn provider(id: &str) -> Value {
    json!({"external_subscription_id": id, "status": "active"})
}

fn lifetime() -> Value {
    json!({"subscription_plan_slug": "lifetime"})
}

fn suspend() -> Value {
    json!({"is_active": false})
}

fn cancel_until(ends_at: &str) -> Value {
    json!({"status": "cancelled", "ends_at": ends_at})
}

fn activate_until(renews_at: &str) -> Value {
    json!({"status": "active", "renews_at": renews_at})
}

fn starting_later(status: &str) -> Value {
    json!({"status": status, "starts_at": MARCH_1})
}

#[rustfmt::skip]
pub(super) fn recorded() -> Vec<Case> {
    let mut cases: Vec<Case> = vec![
        ("canceled by the server", plain(), vec![Server(cancel())], activate(), Becomes("active", "-")),
        ("canceled in trial", trial(), vec![User(cancel())], activate(), Becomes("on_trial", "-")),
        ("canceled in trial, to on_trial", trial(), vec![User(cancel())], to("on_trial"), NOT_FOR_USERS),
        ("canceled in trial, to an alias", trial(), vec![User(cancel())], to("trialing"), NOT_FOR_USERS),
        // Canceling and undoing together would remove an end.
        ("end of a term", term(), vec![User(cancel())], activate(), Becomes("active", JUNE)),
        ("end of a term, canceled by the server", term(), vec![Server(cancel())], activate(), Becomes("active", JUNE)),
        ("end at the renewal", json!({"ends_at": "2027-02-01T12:00:00Z"}), vec![User(cancel())], activate(), Becomes("active", FEBRUARY)),
        ("end cleared", term(), vec![], json!({"ends_at": null}), NOT_FOR_USERS),
        ("server's end", plain(), vec![Server(cancel_until(MARCH_1))], activate(), NOT_ALLOWED),
        ("server's end after the cancellation", plain(), vec![User(cancel()), Server(json!({"ends_at": MARCH_1}))], activate(), NOT_ALLOWED),
        ("created as canceled", cancel_until(MARCH_1), vec![], activate(), NOT_ALLOWED),
        ("far end", plain(), vec![], cancel_until("2037-01-01T00:00:00Z"), NOT_FOR_USERS),
        ("end and access as shown", plain(), vec![], json!({"status": "cancelled", "ends_at": null, "is_active": true}), Becomes("cancelled", FEBRUARY)),
        // Too late.
        ("at the end, before the worker", plain(), vec![User(cancel()), Now("2027-02-01T12:00:00Z")], activate(), NOT_ALLOWED),
        ("after the end", plain(), vec![User(cancel()), Until(MARCH_1)], activate(), NOT_ALLOWED),
        ("after the end, with a date", plain(), vec![User(cancel()), Until(MARCH_1)], activate_until("2028-01-01T00:00:00Z"), NOT_FOR_USERS),
        ("expired by the server", plain(), vec![Server(to("expired"))], activate(), NOT_ALLOWED),
        ("expired, with its own future renewal", json!({"renews_at": "2027-06-01T00:00:00Z"}), vec![Server(to("expired"))], activate_until("2027-06-01T00:00:00Z"), NOT_ALLOWED),
        // Canceled until they start, they would give access then.
        ("pending that starts later", starting_later("pending"), vec![User(cancel())], activate(), NOT_ALLOWED),
        ("paused that starts later", starting_later("paused"), vec![Server(cancel())], activate(), NOT_ALLOWED),
        ("past due, with a server's end", to("past_due"), vec![Server(cancel_until(MARCH_1))], activate(), NOT_ALLOWED),
        ("past due, canceled", to("past_due"), vec![], cancel(), Becomes("expired", START)),
        ("pause, canceled", to("paused"), vec![], cancel(), NOT_ALLOWED),
        ("suspension lifted", plain(), vec![Server(suspend())], json!({"is_active": true}), NOT_FOR_USERS),
        ("suspension lifted with a status", plain(), vec![Server(suspend())], json!({"status": "active", "is_active": true}), NOT_FOR_USERS),
        ("suspended, canceled", plain(), vec![Server(suspend())], cancel(), Becomes("expired", START)),
        ("suspended after the cancellation", plain(), vec![User(cancel()), Server(suspend())], activate(), Becomes("active", "-")),
        ("provider's, canceled", provider("p1"), vec![], cancel(), NOT_ALLOWED),
        ("provider's, undone", provider("p2"), vec![Server(cancel())], activate(), NOT_ALLOWED),
        ("lifetime", lifetime(), vec![], cancel(), NOT_ALLOWED),
        ("to expired", plain(), vec![], to("expired"), NOT_FOR_USERS),
    ];
    for status in ["pending", "on_trial", "paused", "past_due", "unpaid"] {
        cases.push(("not canceled", to(status), vec![], activate(), NOT_ALLOWED));
        cases.push(("to another status", plain(), vec![], to(status), NOT_FOR_USERS));
    }
    cases
}

#[rustfmt::skip]
pub(super) fn managed() -> Vec<Case> {
    let pause = || Server(to("paused"));
    vec![
        ("paid, canceled", plain(), vec![Pay(10.0)], cancel(), Becomes("cancelled", FEBRUARY)),
        ("paid, undone", plain(), vec![Pay(10.0), User(cancel())], activate(), Becomes("active", "-")),
        ("prepaid, undone in a later period", plain(), vec![Pay(30.0), User(cancel()), Until("2027-02-15T12:00:00Z")], activate(), Becomes("active", "-")),
        ("end of a term", term(), vec![Pay(10.0), User(cancel())], activate(), Becomes("active", JUNE)),
        ("canceled in trial", trial(), vec![User(cancel())], activate(), Becomes("on_trial", "-")),
        ("canceled in trial, with credit", trial(), vec![Pay(10.0), User(cancel())], activate(), Becomes("on_trial", "-")),
        ("canceled in trial, undone in the period after it", trial(), vec![Pay(10.0), User(cancel()), Until("2027-01-20T12:00:00Z")], activate(), Becomes("active", "-")),
        ("canceled in trial, undone after its end", trial(), vec![User(cancel()), Now("2027-01-16T12:00:00Z")], activate(), NOT_ALLOWED),
        // Would start or charge a period.
        ("pending", plain(), vec![], activate(), NOT_ALLOWED),
        ("pending, canceled", plain(), vec![User(cancel())], activate(), NOT_ALLOWED),
        ("trial with credit", trial(), vec![Pay(10.0)], activate(), NOT_ALLOWED),
        ("expired with credit", plain(), vec![Pay(10.0), User(cancel()), Until("2027-02-10T12:00:00Z"), Pay(50.0)], activate(), NOT_ALLOWED),
        ("after the end, before the worker", plain(), vec![Pay(10.0), User(cancel()), Now("2027-02-01T12:00:01Z")], activate(), NOT_ALLOWED),
        ("past due", plain(), vec![Pay(10.0), Until("2027-02-03T12:00:00Z")], activate(), NOT_ALLOWED),
        ("past due, canceled", plain(), vec![Pay(10.0), Until("2027-02-03T12:00:00Z"), User(cancel())], activate(), NOT_ALLOWED),
        ("unpaid", plain(), vec![Pay(10.0), Until("2027-02-15T12:00:00Z")], activate(), NOT_ALLOWED),
        // Would end a pause.
        ("pause in a paid period", plain(), vec![Pay(10.0), pause()], activate(), NOT_ALLOWED),
        ("pause in a paid period, canceled", plain(), vec![Pay(10.0), pause()], cancel(), NOT_ALLOWED),
        ("pause, canceled by the server", plain(), vec![Pay(10.0), pause(), Server(cancel())], activate(), NOT_ALLOWED),
        ("pause over a renewal, with credit", plain(), vec![Pay(20.0), pause(), Until("2027-02-10T12:00:00Z")], activate(), NOT_ALLOWED),
        ("suspended after the cancellation", plain(), vec![Pay(10.0), User(cancel()), Server(suspend())], activate(), Becomes("active", "-")),
        ("far end", plain(), vec![Pay(10.0)], cancel_until("2037-01-01T00:00:00Z"), NOT_FOR_USERS),
        // The service computes the renewal.
        ("renewal", plain(), vec![Pay(10.0), User(cancel())], activate_until("2028-01-01T00:00:00Z"), Becomes("active", "-")),
        ("free time", plain(), vec![Pay(10.0)], json!({"free_until": "2028-01-01T00:00:00Z"}), NOT_FOR_USERS),
        ("computed fields", plain(), vec![Pay(10.0)], json!({"status": "cancelled", "credit": 99, "paid_until": MARCH_1}), Becomes("cancelled", FEBRUARY)),
        ("provider's, canceled", provider("p3"), vec![], cancel(), NOT_ALLOWED),
        ("lifetime", lifetime(), vec![Pay(10.0)], cancel(), NOT_ALLOWED),
    ]
}
