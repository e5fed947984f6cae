//! How a subscription's fields look in the document, in the bodies that make and change one. The code that reads
//! them is elsewhere; the contract tests hold the two together.

use perennial_domain::{BillingCycle, Status};
use utoipa::openapi::schema::Object;

use crate::http::schema::{id_pattern, instant, line, or_null, reference, several, words};

pub(super) fn user_id() -> Object {
    reference("Who has it.", "usr")
}

pub(super) fn subscription_plan_id() -> Object {
    reference("The plan.", "plan")
}

pub(super) fn external_subscription_id() -> Object {
    or_null(line(
        "What the payment provider calls it. Unique among a tenant's subscriptions.",
        255,
        "sub_42",
    ))
}

pub(super) fn billing_cycle() -> Object {
    let own = BillingCycle::ALL.map(BillingCycle::as_str);
    let aliases = BillingCycle::ALIASES.map(|(word, _)| word);
    words(
        "How often it is paid for; upper and lower case are the same. Default: as the plan is.",
        &[&own[..], &aliases].concat(),
    )
}

pub(super) fn status() -> Object {
    let own = Status::ALL.map(Status::as_str);
    let aliases = Status::ALIASES.map(|(word, _)| word);
    words(
        "Where it stands; upper and lower case are the same.",
        &[&own[..], &aliases].concat(),
    )
}

pub(super) fn billing_cycle_or_null() -> Object {
    or_null(billing_cycle())
}

pub(super) fn status_or_null() -> Object {
    or_null(status())
}

pub(super) fn starts_at_or_null() -> Object {
    or_null(starts_at())
}

pub(super) fn starts_at() -> Object {
    instant("When it begins.")
}

pub(super) fn renews_at() -> Object {
    or_null(instant("When it is paid for next; not before `starts_at`."))
}

pub(super) fn ends_at() -> Object {
    or_null(instant("When it ends; not before `starts_at`."))
}

fn ids(prefix: &str, description: &str) -> Object {
    let item = id_pattern(prefix);
    let example = format!("{prefix}_0192f0c1a2b37c4d8e5f60718293a4b5");
    several(item.trim_matches(['^', '$']), description, &example)
}

pub(super) fn of_users() -> Object {
    ids("usr", "Only these users'.")
}

pub(super) fn of_plans() -> Object {
    ids("plan", "Only to these plans.")
}

pub(super) fn statuses() -> Object {
    let item = Status::ALL.map(Status::as_str).join("|");
    several(&item, "Only those that stand there.", "active,past_due")
}

pub(super) fn access() -> Object {
    several(
        "true|false",
        "Only those that give access now, or do not.",
        "true",
    )
}

pub(super) fn external_ids() -> Object {
    let control = r"\u0000-\u001f\u007f-\u009f";
    let item = format!(r"[^,{control}]*[^\s,{control}][^,{control}]*");
    let about =
        "Only those that a payment provider calls so. One with a comma in it is not found by this.";
    let mut ids = several(&item, about, "sub_42");
    // Each of them has no more.
    ids.max_length = Some(255);
    ids
}

pub(super) fn then_or_later() -> Object {
    instant("Only then or later.")
}

pub(super) fn later() -> Object {
    instant("Only later than that.")
}

pub(super) fn then_or_earlier() -> Object {
    instant("Only then or earlier.")
}

pub(super) fn earlier() -> Object {
    instant("Only earlier than that.")
}
