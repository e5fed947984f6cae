//! Stores what follows from an attempt: retries, the failure streak, and disabling.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    DeliveryOrder, DisabledReason, EventKind, Id, can_be_given_up, is_failing_too_long, retry_delay,
};
use uuid::Uuid;

use crate::{
    app::App,
    db::{Error, PooledConnection, Transaction},
    events::{self, Actor, Event},
    randomness::jitter,
    webhooks::{
        lease_sql,
        retries_sql::{self, EndpointKey, FailedEvent},
        table,
        view::WebhookEndpointEvent,
    },
};

/// The longest time until the next attempt that an endpoint can request with Retry-After.
const MAX_REQUESTED_DELAY: SignedDuration = SignedDuration::from_hours(24);

/// An attempt that failed.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt {
    pub position: i64,
    pub subject: Uuid,
    /// Of the event, including this one.
    pub failed_attempts: u32,
    /// When the first attempt of the event failed, if that was another one.
    pub failed_since: Option<Timestamp>,
    /// Of the endpoint, including this one.
    pub failures_in_a_row: u32,
    /// How long no request may be sent to the endpoint.
    pub pause: Option<Duration>,
    pub requested_delay: Option<SignedDuration>,
    /// Whether the endpoint responded with 410.
    pub is_gone: bool,
}

/// What a stored attempt changes for later events.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoredAttempt {
    /// Whether later events of the subject must wait.
    pub blocks_subject: bool,
    pub is_disabled: bool,
    /// How long no request may be sent.
    pub pause: Option<Duration>,
}

/// Returns when an event is sent again, or `None` if it is given up.
fn next_attempt_at(
    attempt: &FailedAttempt,
    can_be_given_up: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    let delay = retry_delay(attempt.failed_attempts, can_be_given_up)?;
    // Up to a tenth later, so that the retries of many events spread out.
    let spread = jitter(delay.unsigned_abs().div_f64(10.0));
    let requested = attempt.requested_delay.unwrap_or_default();
    let delay = delay
        .saturating_add(SignedDuration::try_from(spread).unwrap_or_default())
        .max(requested.min(MAX_REQUESTED_DELAY));
    Some(now.saturating_add(delay).unwrap_or(now))
}

/// Stores a failed attempt, and disables the endpoint if it must not be tried any longer.
pub async fn store_failure(
    app: &App,
    connection: &mut PooledConnection,
    key: EndpointKey,
    order: DeliveryOrder,
    attempt: &FailedAttempt,
) -> Result<StoredAttempt, Error> {
    let now = app.clock.now();
    let tx = connection.begin();
    let EndpointKey { tenant, endpoint } = key;
    let failures = attempt.failures_in_a_row;
    let failing_since = lease_sql::mark_failing(&tx, tenant, endpoint, failures, now).await?;
    // `None` if the endpoint was deleted.
    let failing_since = failing_since.unwrap_or(now);
    let since = attempt.failed_since.unwrap_or(now);
    let can_be_given_up = can_be_given_up(order, since, failing_since);
    let next_attempt_at = next_attempt_at(attempt, can_be_given_up, now);
    let failed = FailedEvent {
        position: attempt.position,
        subject: attempt.subject,
        failed_attempts: attempt.failed_attempts,
        next_attempt_at,
    };
    retries_sql::save(&tx, key, &failed, now).await?;
    let mut blocks_subject = true;
    if let Some(at) = next_attempt_at {
        lease_sql::mark_due(&tx, tenant, endpoint, at).await?;
    } else {
        metrics::counter!("perennial_webhook_events_given_up_total").increment(1);
        blocks_subject = retries_sql::unblock(&tx, key, attempt.subject, now).await?;
    }
    let mut pause = attempt.pause;
    if order == DeliveryOrder::Strict {
        // All events wait for this one.
        let delay = next_attempt_at.map(|at| at.duration_since(now).unsigned_abs());
        pause = pause.max(delay);
    }
    if let Some(pause) = pause {
        lease_sql::pause(&tx, tenant, endpoint, pause).await?;
    }
    let reason = if attempt.is_gone {
        Some(DisabledReason::Gone)
    } else {
        is_failing_too_long(failing_since, now).then_some(DisabledReason::Failures)
    };
    if let Some(reason) = reason {
        disable(app, &tx, key, reason).await?;
    }
    tx.commit().await?;
    Ok(StoredAttempt {
        blocks_subject: order == DeliveryOrder::Subject && blocks_subject,
        is_disabled: reason.is_some(),
        pause,
    })
}

/// Disables an endpoint and records the event.
async fn disable(
    app: &App,
    tx: &Transaction<'_>,
    key: EndpointKey,
    reason: DisabledReason,
) -> Result<(), Error> {
    let Some(endpoint) = table::lock(tx, key.tenant, key.endpoint).await? else {
        return Ok(());
    };
    let now = app.clock.now_after(endpoint.updated_at);
    let Some(disabled) = endpoint.disable(reason, now) else {
        return Ok(());
    };
    table::update(tx, key.tenant, &disabled).await?;
    let (old, new) = (
        WebhookEndpointEvent::from(&endpoint),
        WebhookEndpointEvent::from(&disabled),
    );
    let data = events::diff(&old, &new)?;
    let event = Event {
        id: app.ids.generate(now),
        at: now,
        tenant: key.tenant,
        kind: EventKind::WebhookEndpointDisabled,
        subject: key.endpoint.uuid(),
        actor: Actor::default(),
        data: &data,
    };
    events::record(tx, &event).await?;
    let reason = reason.as_str();
    tracing::warn!(endpoint = %key.endpoint, reason, "disabled a webhook endpoint");
    metrics::counter!("perennial_webhook_endpoints_disabled_total", "reason" => reason)
        .increment(1);
    Ok(())
}

/// Stores that an event was delivered. Only needed for an event with a retry, and after failures.
pub async fn store_success(
    app: &App,
    connection: &mut PooledConnection,
    key: EndpointKey,
    (position, subject): (i64, Uuid),
    has_recovered: bool,
) -> Result<StoredAttempt, Error> {
    let now = app.clock.now();
    let tx = connection.begin();
    // The endpoint first, as everywhere.
    lease_sql::mark_delivering(&tx, key.tenant, key.endpoint).await?;
    retries_sql::remove(&tx, key, position).await?;
    if has_recovered {
        retries_sql::hasten(&tx, key, now).await?;
    }
    let blocks_subject = retries_sql::unblock(&tx, key, subject, now).await?;
    tx.commit().await?;
    Ok(StoredAttempt {
        blocks_subject,
        ..StoredAttempt::default()
    })
}

/// Removes the retry of an event that retention has removed from the log.
pub async fn forget(
    connection: &mut PooledConnection,
    key: EndpointKey,
    position: i64,
) -> Result<(), Error> {
    let tx = connection.begin();
    retries_sql::remove(&tx, key, position).await?;
    tx.commit().await
}
