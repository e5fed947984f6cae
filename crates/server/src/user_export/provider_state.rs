//! What payment providers report about a user's subscriptions and payments: where the records differ, what is not applied
//! yet, and which commands are not acknowledged.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, Fact, FactDifference, Id, NotificationState, Payment, PaymentFact,
    Rfc3339Timestamp, Subscription, SubscriptionFact, TenantId,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::WithDeletedAt;
use crate::{
    db::{AgeOrder, Error, PooledConnection},
    payment_accounts::{
        PaymentNotificationView,
        notifications_sql::{self, NotificationFilter, PaymentNotification},
        support_sql::{self, PendingCommand, SupportedObject},
    },
};

/// The notifications that a person may have to look at.
const UNRESOLVED_STATES: [NotificationState; 3] = [
    NotificationState::Waiting,
    NotificationState::Failed,
    NotificationState::Refused,
];
/// How many notifications are listed.
const MAX_NOTIFICATIONS: i64 = 20;

/// What payment providers report about some subscriptions and their payments.
pub struct ProviderReport {
    /// With the differences of the record that follows each.
    pub objects: Vec<(SupportedObject, Vec<FactDifference>)>,
    pub commands: Vec<PendingCommand>,
    /// Newest first.
    pub notifications: Vec<PaymentNotification>,
}

impl ProviderReport {
    /// Reads what is known about subscriptions and payments that are not deleted. `now` is billing time.
    pub async fn load(
        connection: &mut PooledConnection,
        tenant: TenantId,
        subscriptions: &[WithDeletedAt<Subscription>],
        payments: &[WithDeletedAt<Payment>],
        now: Timestamp,
    ) -> Result<Self, Error> {
        let mut records: Vec<Uuid> = live(subscriptions).map(|found| found.id.uuid()).collect();
        records.extend(live(payments).map(|found| found.id.uuid()));
        let own_ids: Vec<&str> = live(subscriptions)
            .filter_map(|found| found.external_id.as_ref().map(ExternalId::as_str))
            .collect();
        let objects =
            support_sql::list_objects_of_records(connection, tenant, &records, &own_ids).await?;
        let ids: Vec<&str> = { objects.iter() }
            .map(|object| object.external_id.as_str())
            .chain(own_ids.iter().copied())
            .collect();
        let commands = support_sql::list_pending_commands_about(connection, tenant, &ids).await?;
        let filter = NotificationFilter {
            states: Some(UNRESOLVED_STATES.to_vec()),
            object_ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
            ..NotificationFilter::default()
        };
        let start = (AgeOrder::NewestFirst, None);
        let notifications = if ids.is_empty() {
            Vec::new()
        } else {
            notifications_sql::list(connection, tenant, &filter, start, MAX_NOTIFICATIONS).await?
        };
        let with_differences = |object: SupportedObject| {
            let differences = differences(&object, subscriptions, payments, now);
            (object, differences)
        };
        Ok(Self {
            objects: objects.into_iter().map(with_differences).collect(),
            commands,
            notifications,
        })
    }

    pub fn to_json(&self) -> ProviderReportJson {
        let objects = self.objects.iter();
        ProviderReportJson {
            objects: objects
                .map(|(object, differences)| PaymentObjectJson::new(object, differences))
                .collect(),
            commands: self.commands.iter().map(PaymentCommandJson::new).collect(),
            notifications: { self.notifications.iter() }
                .map(PaymentNotificationView::from)
                .collect(),
        }
    }
}

/// Returns the records that are not deleted.
pub fn live<T>(records: &[WithDeletedAt<T>]) -> impl Iterator<Item = &T> {
    let live = records
        .iter()
        .filter(|(_, deleted_at)| deleted_at.is_none());
    live.map(|(record, _)| record)
}

/// Compares the record that follows an object with the latest fact.
fn differences(
    object: &SupportedObject,
    subscriptions: &[WithDeletedAt<Subscription>],
    payments: &[WithDeletedAt<Payment>],
    now: Timestamp,
) -> Vec<FactDifference> {
    let (Some(record), Some(fields)) = (object.record, &object.fact) else {
        return Vec::new();
    };
    let subscription = live(subscriptions).find(|found| found.id.uuid() == record);
    let payment = live(payments).find(|found| found.id.uuid() == record);
    if let (Some(subscription), Ok(fact)) = (subscription, SubscriptionFact::from_fields(fields)) {
        subscription.differences_from(&fact, now)
    } else if let (Some(payment), Ok(fact)) = (payment, PaymentFact::from_fields(fields)) {
        payment.differences_from(&fact, now)
    } else {
        Vec::new()
    }
}

/// [`ProviderReport`] as JSON.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProviderReportJson {
    /// Their objects that the records follow, with differences.
    #[serde(rename = "payment_objects")]
    #[schema(value_type = Vec<Object>, example = json!([]))]
    objects: Vec<PaymentObjectJson>,
    /// Commands that they have not acknowledged.
    #[serde(rename = "payment_commands")]
    #[schema(value_type = Vec<Object>, example = json!([]))]
    commands: Vec<PaymentCommandJson>,
    /// Notifications that are waiting, failed or refused.
    #[serde(rename = "payment_notifications")]
    #[schema(value_type = Vec<Object>, example = json!([]))]
    notifications: Vec<PaymentNotificationView>,
}

/// An object of a payment provider as JSON.
#[derive(Debug, Serialize)]
pub struct PaymentObjectJson {
    provider: &'static str,
    payment_account_id: String,
    r#type: &'static str,
    external_id: String,
    state: &'static str,
    reason: Option<String>,
    attempts: i32,
    differences: Vec<FactDifferenceJson>,
}

#[derive(Debug, Serialize)]
struct FactDifferenceJson {
    field: &'static str,
    reported: String,
    recorded: String,
}

impl PaymentObjectJson {
    pub fn new(object: &SupportedObject, differences: &[FactDifference]) -> Self {
        Self {
            provider: object.provider.as_str(),
            payment_account_id: object.account.to_string(),
            r#type: object.kind.as_str(),
            external_id: object.external_id.clone(),
            state: object.state.as_str(),
            reason: object.reason.clone(),
            attempts: object.attempts,
            differences: { differences.iter().cloned() }
                .map(|found| FactDifferenceJson {
                    field: found.field,
                    reported: found.reported,
                    recorded: found.recorded,
                })
                .collect(),
        }
    }
}

/// A command that a payment provider has not acknowledged, as JSON.
#[derive(Debug, Serialize)]
pub struct PaymentCommandJson {
    provider: &'static str,
    payment_account_id: String,
    /// The provider's id of the subscription.
    external_id: String,
    command: String,
    attempts: i32,
    reason: Option<String>,
    next_attempt_at: Option<String>,
    created_at: String,
}

impl PaymentCommandJson {
    pub fn new(command: &PendingCommand) -> Self {
        let text = |instant| Rfc3339Timestamp::from(instant).to_string();
        Self {
            provider: command.provider.as_str(),
            payment_account_id: command.account.to_string(),
            external_id: command.external_id.clone(),
            command: command.command.clone(),
            attempts: command.attempts,
            reason: command.reason.clone(),
            next_attempt_at: command.next_attempt_at.map(text),
            created_at: text(command.created_at),
        }
    }
}
