//! Payments for subscriptions, as a payment provider or a bank reports them.
//!
//! | endpoint | file | access |
//! |---|---|---|
//! | `GET /subscription-payments/{payment_id}` | `read.rs` | clients with `payments:read`; users see their own |
//! | `POST /subscription-payments` | `create.rs` | secret clients with `payments:write` |
//! | `PUT /subscription-payments/{payment_id}` | `update.rs` | secret clients with `payments:write` |
//! | `DELETE /subscription-payments/{payment_id}` | `delete.rs` | secret clients with `payments:write` |
//! | `GET /payments` | `list_all.rs` | clients with `payments:read`; users see their own |
//! | `GET /subscriptions/{id}/payments` | `list.rs` | clients with `payments:read`; users see their own |
//!
//! The rules are in `domain/payment`. In managed billing, completed payments, refunds and disputes
//! post to the subscription's ledger. Otherwise a completed payment activates a past due or unpaid
//! subscription. Both happen in the transaction of the payment's own change (`apply.rs`).

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{
    EventKind, LifecycleKind, Payment, PaymentId, PaymentUpdateError, Subscription, TenantId,
    ValidationError,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    clock::Clock,
    db::{Sql, Transaction},
    http::{
        etag::IfMatch,
        problem::{Code, Problem},
    },
    record::{ExternalRecord, Locked, Record, not_found},
};

mod apply;
mod body;
mod create;
mod delete;
mod list;
mod list_all;
mod payment_list_sql;
mod read;
pub mod table;
mod update;
mod view;

pub use apply::{insert_and_apply, update_and_apply};
pub use body::parse_create;
pub use create::record_payment;
pub use list_all::ORDERS as PAYMENT_ORDERS;
pub use payment_list_sql::{PaymentFilter, PaymentOrder, list as list_payments};
pub use update::update_payment;
pub use view::PaymentView;

/// Returns the endpoints of this feature.
pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create::create))
        .routes(routes!(read::read, update::update, delete::delete))
        .routes(routes!(list::list))
        .routes(routes!(list_all::list_all))
}

impl Record for Payment {
    type Id = PaymentId;
    type View = PaymentView;

    const NOUN: &'static str = "payment";
    const KEY: &'static str = "id";
    const NOT_FOUND: Code = Code::PaymentNotFound;
    const DELETED: EventKind = EventKind::PaymentDeleted;
    const SOFT_DELETE: &'static Sql = &table::SOFT_DELETE;

    fn id(&self) -> PaymentId {
        self.id
    }

    fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    fn view(&self, _now: Timestamp) -> PaymentView {
        PaymentView::from(self)
    }
}

impl ExternalRecord for Payment {
    const EXTERNAL_ID: &'static str = "external_payment_id";
    const EXTERNAL_ID_UNIQUE: &'static str = table::EXTERNAL_ID_UNIQUE;
    const FIND_BY_EXTERNAL_ID: &'static Sql = &table::FIND_BY_EXTERNAL_ID;
}

/// Locks the payment to change, and checks `If-Match`.
async fn lock(
    clock: Clock,
    tx: &Transaction<'_>,
    tenant: TenantId,
    id: Result<PaymentId, ValidationError>,
    if_match: &IfMatch,
) -> Result<Locked<Payment>, Problem> {
    let id = id.map_err(not_found::<Payment>)?;
    let row = table::lock(tx, tenant, id).await?;
    Locked::new(row, id, clock, if_match)
}

/// Checks that the refunded amount is known if the payment belongs to a ledger.
fn check_refund(payment: &Payment, subscription: &Subscription) -> Result<(), Problem> {
    if subscription.lifecycle_kind() != LifecycleKind::Managed {
        return Ok(());
    }
    match payment.validate_refund_known() {
        Some(error) => Err(Problem::from_field_errors(vec![error])),
        None => Ok(()),
    }
}

/// Returns the problem for a rejected update.
fn update_problem(error: PaymentUpdateError) -> Problem {
    match error {
        PaymentUpdateError::InvalidFields(errors) => Problem::from_field_errors(errors),
        PaymentUpdateError::TransitionNotAllowed { from, to } => {
            let allowed: Vec<&str> = from
                .allowed_transitions()
                .iter()
                .map(|to| to.as_str())
                .collect();
            let list = match allowed.as_slice() {
                [] => "none".to_owned(),
                some => some.join(", "),
            };
            let detail = format!("cannot change from {from} to {to}; allowed: {list}");
            Problem::new(Code::InvalidTransition, detail).with_allowed(allowed)
        }
        PaymentUpdateError::AlreadySettled(fields) => {
            let detail = format!(
                "the payment has settled; these fields cannot change: {}",
                fields.join(", ")
            );
            Problem::new(Code::PaymentSettled, detail)
        }
    }
}
