//! How a payment's fields look in the document, in the bodies that make and change one. The code that reads
//! them is elsewhere; the contract tests hold the two together.

use perennial_domain::PaymentStatus;
use utoipa::openapi::schema::{Object, Schema};

use crate::http::schema::{amount_in, amount_or_null, line, or_null, reference, words};

pub(super) fn subscription_id() -> Object {
    reference("What it is for.", "sub")
}

pub(super) fn amount() -> Schema {
    amount_in("How much, exact to the currency's decimals; never rounded.")
}

pub(super) fn refunded_amount() -> Schema {
    amount_or_null(
        "How much was given back; only with the status `partially_refunded`, and less than the amount.",
    )
}

pub(super) fn external_payment_id() -> Object {
    or_null(line(
        "What the payment provider calls it. Unique among a tenant's payments.",
        255,
        "pi_42",
    ))
}

pub(super) fn status_or_null() -> Object {
    or_null(status())
}

pub(super) fn status() -> Object {
    let own = PaymentStatus::ALL.map(PaymentStatus::as_str);
    let aliases = PaymentStatus::ALIASES.map(|(word, _)| word);
    words(
        "Where it stands; upper and lower case are the same.",
        &[&own[..], &aliases].concat(),
    )
}
