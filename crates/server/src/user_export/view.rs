//! A user and the user's records as JSON.
//!
//! Records are serialized directly, not through `serde_json::Value`, which would turn amounts into
//! floats (`10.00` into `10.0`).

use jiff::Timestamp;
use perennial_domain::{Id, Payment, Rfc3339Timestamp, Session, Subscription};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;

use super::{WithDeletedAt, provider_state::ProviderReportJson, user_record::UserRecord};
use crate::{
    auth::sessions,
    db::{AgeOrder, Error},
    events::{self, RecordedEvent},
    subscription_payments::PaymentView,
    subscriptions::{
        SubscriptionView,
        ledger::{self, LedgerEntryView},
    },
    timeline::EventAuthor,
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

/// Everything that is stored about a user. `perennial user show --json` prints a part of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserExport {
    user: UserView,
    /// The user's identities at identity providers.
    #[schema(value_type = Vec<Object>, example = json!([{"issuer": "https://accounts.example.com", "subject": "248289761001"}]))]
    identities: Vec<Value>,
    /// With those that have ended and are not deleted yet.
    #[schema(value_type = Vec<Object>, example = json!([{"id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5", "ip": "203.0.113.7"}]))]
    sessions: Vec<Value>,
    /// With the ledger and `deleted_at` of each.
    #[schema(value_type = Vec<Object>, example = json!([{"id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5", "status": "active"}]))]
    subscriptions: Vec<SubscriptionExport>,
    /// With `deleted_at` of each.
    #[schema(value_type = Vec<Object>, example = json!([{"id": "pay_0192f0c1a2b37c4d8e5f60718293a4b5", "status": "completed"}]))]
    payments: Vec<DeletableView<PaymentView>>,
    #[serde(flatten)]
    provider: ProviderReportJson,
    /// Oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Object>, example = json!([{"kind": "user.created", "data": {}}]))]
    pub events: Option<Vec<EventJson>>,
}

#[derive(Debug, Serialize)]
pub struct EventJson {
    at: String,
    kind: String,
    /// Not in exports for the user, because it can name the operator's staff.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_by: Option<EventAuthor>,
    data: Box<RawValue>,
}

impl EventJson {
    pub fn new(event: RecordedEvent, recorded_by: Option<EventAuthor>) -> Self {
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
    pub fn summary(&self) -> UserExport {
        let identities = self.identities.iter();
        let subscriptions = self.subscriptions.iter();
        UserExport {
            user: UserView::from(&self.user),
            identities: identities
                .map(|identity| json!({"issuer": identity.issuer, "subject": identity.subject}))
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

    /// Exports everything stored about the user, including ended sessions, ledgers and all events,
    /// oldest first.
    pub async fn full_export(&self) -> Result<UserExport, Error> {
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
