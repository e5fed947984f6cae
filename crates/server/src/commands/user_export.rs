//! A user and the user's records as JSON.
//!
//! Records are serialized directly, not through `serde_json::Value`, which would turn amounts into
//! floats (`10.00` into `10.0`).

use jiff::Timestamp;
use perennial_domain::{Id, Payment, Rfc3339Timestamp, Session, Subscription};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    event_lines::{ClientNames, EventAuthor, MAX_EVENTS},
    explain::WithDeletedAt,
    provider_report::ProviderReportJson,
    user_selector::UserRecord,
};
use crate::{
    auth::sessions,
    db::AgeOrder,
    events::{self, RecordedEvent},
    subscription_payments::PaymentView,
    subscriptions::{
        SubscriptionView,
        ledger::{self, LedgerEntryView},
    },
    users::UserView,
};

/// A record as the API shows it, with the time of its deletion if it was deleted.
#[derive(Debug, Serialize)]
pub struct DeletableView<V> {
    #[serde(flatten)]
    view: V,
    deleted_at: Option<String>,
}

impl<V> DeletableView<V> {
    fn new(view: V, deleted_at: Option<Timestamp>) -> Self {
        let deleted_at = deleted_at.map(|instant| Rfc3339Timestamp::from(instant).to_string());
        Self { view, deleted_at }
    }
}

/// A subscription, and in a full export its ledger, oldest entry first.
#[derive(Debug, Serialize)]
struct SubscriptionExport {
    #[serde(flatten)]
    subscription: DeletableView<SubscriptionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<Vec<LedgerEntryView>>,
}

fn subscription_view(
    (subscription, deleted_at): &WithDeletedAt<Subscription>,
    now: Timestamp,
) -> DeletableView<SubscriptionView> {
    let view = SubscriptionView::at(subscription, now);
    let view = match deleted_at {
        Some(_) => view.without_access(),
        None => view,
    };
    DeletableView::new(view, *deleted_at)
}

pub fn payment_view((payment, deleted_at): &WithDeletedAt<Payment>) -> DeletableView<PaymentView> {
    DeletableView::new(PaymentView::from(payment), *deleted_at)
}

pub fn session_json(session: &Session) -> Value {
    let text = |instant| Rfc3339Timestamp::from(instant).to_string();
    json!({
        "id": session.id.to_string(),
        "client_id": session.client.to_string(),
        "issuer": session.issuer,
        "ip": session.address.to_string(),
        "user_agent": session.user_agent,
        "created_at": text(session.created_at),
        "last_used_at": text(session.last_used_at),
        "expires_at": text(session.expires_at),
        "ended_at": session.ended_at.map(text),
    })
}

/// What `perennial user show --json` and `perennial user export` print.
#[derive(Debug, Serialize)]
pub struct UserExport {
    user: UserView,
    identities: Vec<Value>,
    sessions: Vec<Value>,
    subscriptions: Vec<SubscriptionExport>,
    payments: Vec<DeletableView<PaymentView>>,
    #[serde(flatten)]
    provider: ProviderReportJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventJson>>,
}

#[derive(Debug, Serialize)]
struct EventJson {
    at: String,
    kind: String,
    /// Not in exports for the user, because it can name the operator's staff.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_by: Option<EventAuthor>,
    data: Box<RawValue>,
}

impl EventJson {
    fn new(event: RecordedEvent, recorded_by: Option<EventAuthor>) -> Self {
        Self {
            at: Rfc3339Timestamp::from(event.at).to_string(),
            kind: event.kind,
            recorded_by,
            data: event.data,
        }
    }
}

impl UserRecord {
    /// Exports the user with active sessions, without events and ledgers.
    fn summary(&self) -> UserExport {
        let identities = self.identities.iter();
        let subscriptions = self.subscriptions.iter();
        UserExport {
            user: UserView::from(&self.user),
            identities: identities
                .map(|(issuer, subject)| json!({"issuer": issuer, "subject": subject}))
                .collect(),
            sessions: self.sessions.iter().map(session_json).collect(),
            subscriptions: subscriptions
                .map(|subscription| SubscriptionExport {
                    subscription: subscription_view(subscription, self.now),
                    ledger: None,
                })
                .collect(),
            payments: self.payments.iter().map(payment_view).collect(),
            provider: self.provider.to_json(),
            events: None,
        }
    }

    /// Exports the user like [`Self::summary`], with the latest events, oldest first.
    pub async fn summary_with_events(&self, clients: &ClientNames) -> anyhow::Result<UserExport> {
        let (connection, tenant) = (&self.connection, self.tenant.id);
        let events = events::list_for_subjects(connection, tenant, &self.event_subjects()).await?;
        let omitted = events.len().saturating_sub(MAX_EVENTS);
        let events = events.into_iter().skip(omitted).map(|event| {
            let author = clients.author(&event);
            EventJson::new(event, Some(author))
        });
        Ok(UserExport {
            events: Some(events.collect()),
            ..self.summary()
        })
    }

    /// Exports everything stored about the user, including ended sessions, ledgers and all events,
    /// oldest first.
    pub async fn full_export(&self) -> anyhow::Result<UserExport> {
        let (connection, tenant) = (&self.connection, self.tenant.id);
        let sessions =
            sessions::user_sessions_sql::list_all(connection, &self.tenant, self.user.id).await?;
        let mut subjects = self.event_subjects();
        subjects.extend(sessions.iter().map(|session| session.id.uuid()));
        let events = events::list_for_subjects(connection, tenant, &subjects).await?;
        let events = events.into_iter().map(|event| EventJson::new(event, None));
        let mut subscriptions = Vec::new();
        for record in &self.subscriptions {
            let all = (AgeOrder::OldestFirst, None);
            let id = record.0.id;
            let entries = ledger::ENTRIES
                .read(connection, tenant, id, all, i64::MAX)
                .await?;
            subscriptions.push(SubscriptionExport {
                subscription: subscription_view(record, self.now),
                ledger: Some(entries.iter().map(LedgerEntryView::from).collect()),
            });
        }
        Ok(UserExport {
            subscriptions,
            sessions: sessions.iter().map(session_json).collect(),
            events: Some(events.collect()),
            ..self.summary()
        })
    }
}
