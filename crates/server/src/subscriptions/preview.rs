//! `POST /subscriptions/{id}/preview`

use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use perennial_domain::{SignedMoney, SubscriptionId};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use super::{
    body::UpdateSubscription, find_visible, ledger::LedgerEntryView, update::parse_changes,
    update_problem, view::SubscriptionView,
};
use crate::{
    app::App,
    auth::{Caller, SubscriptionsRead},
    http::{
        json::BodyFields,
        openapi::SubscriptionIdPath,
        path_param::PathParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        response::{OkJson, money_number, timestamp, timestamp_or_null},
        schema::amount_output,
    },
};

/// What a change would do and cost.
#[derive(Debug, Serialize, ToSchema)]
pub struct SubscriptionPreview {
    /// The time of the preview.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    at: Timestamp,
    /// The subscription after the change. If `amount_due` is more than 0, as if it had been paid.
    subscription: SubscriptionView,
    /// The ledger entries that the change, and the payment of `amount_due`, would post.
    ledger: Vec<LedgerEntryView>,
    #[serde(serialize_with = "money_number")]
    #[schema(schema_with = amount_due)]
    amount_due: SignedMoney,
    /// Until when a payment of `amount_due` suffices for the same request; null if nothing is due.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    valid_until: Option<Timestamp>,
}

fn amount_due() -> Object {
    amount_output("The amount to pay before the change; 0 if it would succeed now.")
}

/// Preview a change of a subscription
///
/// Takes the body of `PUT /subscriptions/{id}` and returns what that request would do and cost, without any
/// effect. A lack of credit is not an error here: `amount_due` is what to pay first. The request then
/// succeeds until `valid_until`: for an hour, unless something is due before. What was paid too much stays credit.
#[utoipa::path(
    post,
    path = "/subscriptions/{id}/preview",
    tag = "Subscriptions",
    operation_id = "previewSubscriptionUpdate",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(SubscriptionIdPath),
    request_body(content = UpdateSubscription, description = "The fields to change."),
    responses(
        (status = 200, description = "What the change would do and cost.", body = SubscriptionPreview),
        (status = 404, description = "No subscription has this id (`subscription_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 409, description = "The status transition is not allowed (`invalid_transition`), or free time is not possible (`free_time_not_possible`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn preview(
    State(app): State<Arc<App>>,
    caller: Caller<SubscriptionsRead>,
    PathParam(id): PathParam<SubscriptionId>,
    fields: BodyFields,
) -> Result<OkJson<SubscriptionPreview>, Problem> {
    let before = find_visible(&app, &caller, id).await?;
    let mut connection = app.database_for(caller.tenant())?.connection().await?;
    // Rolled back: it only reads the plan.
    let tx = connection.begin();
    let changes = parse_changes(&tx, caller.tenant().id, &before, fields).await?;
    let now = app.billing_clock.now_after(before.updated_at);
    let preview = before.preview(&changes, now);
    let preview = preview.map_err(|error| update_problem(&before, error))?;
    let currency = before.plan.price.currency();
    let entry = |entry| LedgerEntryView::preview(entry, currency);
    Ok(OkJson(SubscriptionPreview {
        at: now,
        subscription: SubscriptionView::at(&preview.after, now),
        ledger: preview.entries.iter().map(entry).collect(),
        amount_due: SignedMoney {
            minor_units: preview.amount_due,
            currency,
        },
        valid_until: preview.valid_until,
    }))
}
