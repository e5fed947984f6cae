//! `GET /users/{id}/timeline`

use std::{collections::BTreeMap, sync::Arc};

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{Id, Payment, Scope, Subscription, TenantId, UserId};
use uuid::Uuid;

use super::{
    actor_names::ActorNames,
    history::{StatusHistory, load_histories},
    view::{EntryView, SubscriptionTimelineView, TimelinePaymentView, TimelineView},
};
use crate::{
    app::App,
    auth::{Caller, TimelineRead},
    db::{Error, PooledConnection},
    events::{self, RecordedEvent},
    http::{
        openapi::UserIdPath,
        path_param::PathParam,
        problem::{CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
    subscription_payments, subscriptions,
    users::{self, user_not_found},
};

const MAX_SUBSCRIPTIONS: usize = 100;
const MAX_PAYMENTS: usize = 50;
/// Payments whose events may be among the latest. More than are shown, because deleted ones are not shown.
const MAX_READ_PAYMENTS: i64 = 100;
const MAX_ENTRIES: usize = 100;

/// Explain a user's subscriptions
///
/// Returns why each subscription has its status, what happens next and what fixes it, each as a sentence and as data; the past
/// and the expected future as a lifeline; and the latest events. The forecast follows from the rules that change the
/// subscription, and assumes that nothing is paid and no request is made. Requires the scopes `users:read` and
/// `subscriptions:read`; payments and their events also `payments:read`. With the access token of a user, only that user is
/// found. An erased user is found, without personal data.
#[utoipa::path(
    get,
    path = "/users/{id}/timeline",
    tag = "Users",
    operation_id = "readTimeline",
    security(("client-id" = []), ("client-id" = [], "bearer" = [])),
    params(UserIdPath),
    responses(
        (status = 200, description = "The timeline.", body = TimelineView),
        (status = 404, description = "There is no such user (`user_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
    ),
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller<TimelineRead>,
    PathParam(id): PathParam<UserId>,
) -> Result<NoStore<TimelineView>, Problem> {
    let id = id.map_err(|error| user_not_found(Err(error)))?;
    if caller
        .user_session()
        .is_some_and(|session| session.user.id != id)
    {
        return Err(user_not_found(Ok(id)));
    }
    let tenant = caller.tenant();
    let now = app.billing_clock.now();
    let reads_payments = caller.has_scope(Scope::PaymentsRead);
    let connection = app.database_for(tenant)?.connection().await?;
    let erased_at = users::table::find_erasure(&connection, tenant.id, id).await?;
    let erased_at = erased_at.ok_or_else(|| user_not_found(Ok(id)))?;
    let scope = subscriptions::scope(tenant);
    let mut records =
        subscriptions::table::list_by_user_with_deleted(&connection, scope, id).await?;
    records.reverse();
    records.truncate(MAX_SUBSCRIPTIONS);
    let sources = Sources::read(&connection, (tenant.id, id), &records, reads_payments).await?;
    drop(connection);
    let names = ActorNames::load(&app.db, tenant.id, &sources.entries).await?;
    let is_for_user = caller.user_session().is_some();
    let no_history = StatusHistory::default();
    let entries = sources.entries.iter().take(MAX_ENTRIES);
    let view = TimelineView {
        user_id: id,
        erased_at,
        as_of: now,
        subscriptions: { records.iter() }
            .map(|record| {
                let history = sources.histories.get(&record.0.id.uuid());
                let history = history.unwrap_or(&no_history);
                let payments = sources.payments(&record.0);
                let is_erased = erased_at.is_some();
                SubscriptionTimelineView::new(record, history, now, is_erased, payments)
            })
            .collect(),
        entries: entries
            .map(|event| EntryView::new(event, &names, is_for_user))
            .collect(),
        has_more: sources.entries.len() > MAX_ENTRIES,
    };
    Ok(NoStore(StatusCode::OK, view))
}

/// The events and payments of a user.
struct Sources {
    histories: BTreeMap<Uuid, StatusHistory>,
    /// With their deletion times. `None` if the client may not read payments.
    payments: Option<Vec<(Payment, Option<Timestamp>)>>,
    /// Newest first. One more than is returned, if there are more.
    entries: Vec<RecordedEvent>,
}

impl Sources {
    async fn read(
        connection: &PooledConnection,
        (tenant, user): (TenantId, UserId),
        records: &[(Subscription, Option<Timestamp>)],
        reads_payments: bool,
    ) -> Result<Self, Error> {
        let ids: Vec<Uuid> = records.iter().map(|(record, _)| record.id.uuid()).collect();
        let histories = load_histories(connection, tenant, &ids).await?;
        let payments = if reads_payments {
            let limit = MAX_READ_PAYMENTS;
            let latest = subscription_payments::table::list_latest_with_deleted(
                connection, tenant, &ids, limit,
            );
            Some(latest.await?)
        } else {
            None
        };
        let mut subjects = vec![user.uuid()];
        subjects.extend(ids);
        subjects.extend({ payments.iter().flatten() }.map(|(payment, _)| payment.id.uuid()));
        let limit = i64::try_from(MAX_ENTRIES).unwrap_or(0).saturating_add(1);
        let entries = events::list_latest(connection, tenant, &subjects, limit).await?;
        Ok(Self {
            histories,
            payments,
            entries,
        })
    }

    fn payments(&self, subscription: &Subscription) -> Option<Vec<TimelinePaymentView>> {
        let own = { self.payments.as_ref()?.iter() }
            .filter(|(payment, deleted_at)| {
                payment.subscription == subscription.id && deleted_at.is_none()
            })
            .take(MAX_PAYMENTS);
        Some(
            own.map(|(payment, _)| TimelinePaymentView::from(payment))
                .collect(),
        )
    }
}
