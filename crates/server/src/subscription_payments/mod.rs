//! Payments: what was paid for a subscription, as a payment provider or a bank says.
//!
//! | endpoint | file | who |
//! |---|---|---|
//! | `GET /subscription-payments/{payment_id}` | `read.rs` | clients with `payments:read`; on behalf of a user, that user's |
//! | `POST /subscription-payments` | `create.rs` | secret clients with `payments:write` |
//! | `PUT /subscription-payments/{payment_id}` | `update.rs` | secret clients with `payments:write` |
//! | `DELETE /subscription-payments/{payment_id}` | `delete.rs` | secret clients with `payments:write` |
//! | `GET /subscriptions/{id}/payments` | `list.rs` | clients with `payments:read`; on behalf of a user, that user's |
//!
//! The rules are in `domain/payment`. A payment that becomes completed makes a past due or unpaid subscription active, or
//! pays for its next period, in the same transaction (`count.rs`).

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{ExternalId, Invalid, Payment, PaymentId, PaymentRefused, TenantId};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    db::{self, Engine, Transaction},
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
};

mod count;
mod create;
mod delete;
mod list;
mod read;
mod shape;
pub mod table;
mod update;
mod view;

pub use count::{add, save};
pub use view::PaymentView;

/// The endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create::create))
        .routes(routes!(read::read, update::update, delete::delete))
        .routes(routes!(list::list))
}

/// There is no payment with this id, or it cannot be one, or it is somebody else's.
fn no_such_payment(id: Result<PaymentId, Invalid>) -> Problem {
    let detail = match id {
        Ok(id) => format!("no payment has this id: {id}"),
        Err(why) => format!("no payment has this id: {why}"),
    };
    Problem::new(Code::PaymentNotFound, detail)
}

/// A payment that nobody else changes until the end of the transaction.
struct Locked {
    payment: Payment,
    /// What GET would answer.
    view: PaymentView,
    /// The instant of the change. Read under the lock, so that the order of events is the order of changes.
    now: Timestamp,
}

/// Locks the payment that a change is meant for, if it is still the one that the caller saw.
async fn lock(
    app: &App,
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: Result<PaymentId, Invalid>,
    if_match: &IfMatch,
) -> Result<Locked, Problem> {
    let id = id.map_err(|why| no_such_payment(Err(why)))?;
    let found = table::lock(tx, tenant, id).await?;
    let payment = found.ok_or_else(|| no_such_payment(Ok(id)))?;
    let view = PaymentView::from(&payment);
    if_match.check(&view)?;
    let now = app.billing.after(payment.updated_at);
    Ok(Locked { payment, view, now })
}

/// Why a change was refused.
fn refused(refused: PaymentRefused) -> Problem {
    match refused {
        PaymentRefused::Fields(wrong) => Problem::wrong(wrong),
        PaymentRefused::Transition { from, to } => {
            let allowed: Vec<&str> = from.may_become().iter().map(|to| to.as_str()).collect();
            let can = match allowed.as_slice() {
                [] => "it stays as it is".to_owned(),
                some => format!("it can become {}", some.join(", ")),
            };
            let detail = format!("from {from} it does not become {to}; {can}");
            Problem::new(Code::InvalidTransition, detail).allowing(allowed)
        }
        PaymentRefused::Settled(fields) => {
            let detail = format!(
                "money has come: {} cannot change any more",
                fields.join(", ")
            );
            Problem::new(Code::PaymentSettled, detail)
        }
    }
}

/// Another payment has this external id; which, the engine knows.
async fn duplicate(
    engine: &Engine,
    tenant: TenantId,
    external_id: Option<&ExternalId>,
) -> Result<Problem, db::Error> {
    let existing = match external_id {
        Some(external_id) => table::find_by_external_id(engine, tenant, external_id).await?,
        None => None,
    };
    let detail = "another payment has this external_payment_id";
    Ok(Problem::new(Code::DuplicateExternalId, detail).existing(existing))
}
