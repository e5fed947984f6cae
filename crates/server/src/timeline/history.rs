//! The status of a subscription over time, as its events tell.

use std::collections::BTreeMap;

use jiff::Timestamp;
use perennial_domain::{EventKind, Subscription, SubscriptionStatus, TenantId};
use uuid::Uuid;

use crate::{
    db::{Error, PooledConnection},
    events::{self, StatusChange},
};

/// How many of the latest changes of a subscription make up its history.
const MAX_STATUS_CHANGES: i64 = 200;

/// What decides about a subscription's status and access over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessState {
    pub status: SubscriptionStatus,
    pub suspended: bool,
    pub starts_at: Timestamp,
    pub ends_at: Option<Timestamp>,
}

impl AccessState {
    pub fn status_at(&self, at: Timestamp) -> SubscriptionStatus {
        match self.ends_at {
            Some(end) if end <= at => SubscriptionStatus::Expired,
            _ => self.status,
        }
    }

    pub fn has_access(&self, at: Timestamp) -> bool {
        self.starts_at <= at && !self.suspended && self.status_at(at).gives_access()
    }
}

impl From<&Subscription> for AccessState {
    fn from(subscription: &Subscription) -> Self {
        Self {
            status: subscription.status,
            suspended: subscription.suspended,
            starts_at: subscription.starts_at,
            ends_at: subscription.ends_at,
        }
    }
}

/// Why a subscription expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiryReason {
    FirstPaymentMissing,
    PaymentMissing,
    Cancelled,
    EndReached,
    UserErased,
    Requested,
    Unknown,
}

/// The states of a subscription, oldest first. Events that retention has removed are missing.
#[derive(Debug, Default)]
pub struct StatusHistory {
    pub states: Vec<(Timestamp, AccessState)>,
    /// When the latest status began; `None` if the event is missing.
    status_since: Option<Timestamp>,
    expiry: Option<ExpiryReason>,
}

/// Reads the histories of these subscriptions, by their ids.
pub async fn load_histories(
    connection: &PooledConnection,
    tenant: TenantId,
    subscriptions: &[Uuid],
) -> Result<BTreeMap<Uuid, StatusHistory>, Error> {
    let limit = MAX_STATUS_CHANGES;
    let changes = events::list_status_changes(connection, tenant, subscriptions, limit).await?;
    let by_subscription = changes.chunk_by(|one, next| one.subject == next.subject);
    let histories = by_subscription.filter_map(|changes| {
        let subject = changes.first()?.subject;
        Some((subject, StatusHistory::new(changes)))
    });
    Ok(histories.collect())
}

impl StatusHistory {
    /// Reads the events of one subscription, which are in the order of time.
    pub(super) fn new(changes: &[StatusChange]) -> Self {
        let mut history = Self::default();
        for change in changes {
            let Some(state) = parse_state(change) else {
                continue;
            };
            let last = history.states.last().map(|(_, last)| last.status);
            history.states.push((change.at, state));
            let is_created = change.kind == EventKind::SubscriptionCreated.as_str();
            if is_created || change.previous_status.is_some() {
                history.status_since = Some(change.at);
            } else if last.is_some_and(|last| last != state.status) {
                history.status_since = None;
            }
            if change.status.as_deref() == Some(SubscriptionStatus::Expired.as_str())
                && (change.previous_status.is_some() || history.states.len() == 1)
            {
                history.expiry = Some(expiry_reason(change));
            }
        }
        history
    }

    /// Returns since when the subscription has this status, if the events tell.
    pub fn since(&self, status: SubscriptionStatus) -> Option<Timestamp> {
        let (_, last) = self.states.last()?;
        self.status_since.filter(|_| last.status == status)
    }

    pub fn expiry_reason(&self) -> ExpiryReason {
        let last = self.states.last().map(|(_, state)| state.status);
        match last {
            Some(SubscriptionStatus::Expired) => self.expiry.unwrap_or(ExpiryReason::Unknown),
            // The end has passed, and the expiry is not stored yet.
            Some(SubscriptionStatus::Cancelled) => ExpiryReason::Cancelled,
            Some(_) => ExpiryReason::EndReached,
            None => ExpiryReason::Unknown,
        }
    }
}

/// Returns the state after a change, or `None` for an event that does not tell it, such as a deletion.
fn parse_state(change: &StatusChange) -> Option<AccessState> {
    let instant = |text: &String| text.parse::<Timestamp>().ok();
    let mut state = AccessState {
        status: change.status.as_ref()?.parse().ok()?,
        suspended: false,
        starts_at: change.starts_at.as_ref().and_then(instant)?,
        ends_at: change.ends_at.as_ref().and_then(instant),
    };
    state.suspended = state.has_access(change.at) && change.is_active == Some(false);
    Some(state)
}

fn expiry_reason(change: &StatusChange) -> ExpiryReason {
    use SubscriptionStatus::{Cancelled, PastDue, Paused, Pending, Unpaid};
    let previous: Option<SubscriptionStatus> =
        { change.previous_status.as_ref() }.and_then(|status| status.parse().ok());
    match change.kind.parse() {
        Ok(EventKind::SubscriptionEnded) => ExpiryReason::UserErased,
        // A deadline for payments sets the end; an end that was set before is only reached.
        Ok(EventKind::SubscriptionExpired) => match previous {
            Some(Pending) if change.has_new_end => ExpiryReason::FirstPaymentMissing,
            Some(PastDue | Unpaid | Paused) if change.has_new_end => ExpiryReason::PaymentMissing,
            Some(Cancelled) => ExpiryReason::Cancelled,
            _ => ExpiryReason::EndReached,
        },
        Ok(EventKind::SubscriptionUpdated) => ExpiryReason::Requested,
        _ => ExpiryReason::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: &str, day: &str, status: &str, previous: Option<&str>) -> StatusChange {
        StatusChange {
            at: format!("{day}T12:00:00Z").parse().unwrap(),
            kind: kind.to_owned(),
            subject: Uuid::nil(),
            status: Some(status.to_owned()),
            is_active: Some(true),
            starts_at: Some("2026-01-01T12:00:00Z".to_owned()),
            ends_at: None,
            previous_status: previous.map(str::to_owned),
            has_new_end: false,
        }
    }

    #[test]
    fn status_begins_with_the_event_that_changed_it() {
        let active = SubscriptionStatus::Active;
        let updated = change("subscription.updated", "2026-03-01", "active", None);
        let resumed = change(
            "subscription.updated",
            "2026-02-01",
            "active",
            Some("paused"),
        );
        let history = StatusHistory::new(&[resumed.clone(), updated.clone()]);
        assert_eq!(history.since(active), Some(resumed.at));
        assert_eq!(history.since(SubscriptionStatus::Paused), None);
        // Retention has removed the event that changed the status.
        let history = StatusHistory::new(&[updated]);
        assert_eq!(history.since(active), None);
        assert_eq!(history.states.len(), 1);
        let created = change("subscription.created", "2026-01-01", "active", None);
        let history = StatusHistory::new(std::slice::from_ref(&created));
        assert_eq!(history.since(active), Some(created.at));
    }
}
