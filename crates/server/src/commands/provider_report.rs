//! What payment providers report about a user's subscriptions and payments: where the records differ, what is not applied
//! yet, and which commands are not acknowledged. For `user show`, `subscription show` and `payment-account show`.

use jiff::Timestamp;
use perennial_domain::{
    ExternalId, Fact, FactDifference, Id, NotificationState, Payment, PaymentFact,
    Rfc3339Timestamp, Subscription, SubscriptionFact, TenantId,
};
use serde::Serialize;
use uuid::Uuid;

use super::{
    explain::{WithDeletedAt, date},
    pluralize,
    terminal::print_wrapped,
};
use crate::{
    db::{AgeOrder, PooledConnection},
    payment_accounts::{
        PaymentNotificationView,
        notifications_sql::{self, NotificationFilter, PaymentNotification},
        support_sql::{self, ObjectState, PendingCommand, SupportedObject},
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
    objects: Vec<(SupportedObject, Vec<FactDifference>)>,
    commands: Vec<PendingCommand>,
    /// Newest first.
    notifications: Vec<PaymentNotification>,
}

impl ProviderReport {
    /// Reads what is known about subscriptions and payments that are not deleted. `now` is billing time.
    pub async fn load(
        connection: &mut PooledConnection,
        tenant: TenantId,
        subscriptions: &[WithDeletedAt<Subscription>],
        payments: &[WithDeletedAt<Payment>],
        now: Timestamp,
    ) -> anyhow::Result<Self> {
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

    /// Prints what concerns a subscription and its payments.
    pub fn print(&self, subscription: &Subscription, payments: &[WithDeletedAt<Payment>]) {
        let own_id = subscription.external_id.as_ref().map(ExternalId::as_str);
        let is_own = |object: &SupportedObject| object.record == Some(subscription.id.uuid());
        let is_of_payment = |object: &SupportedObject| {
            let mut own = live(payments).filter(|found| found.subscription == subscription.id);
            match object.record {
                Some(record) => own.any(|found| found.id.uuid() == record),
                None => { object.awaited_ids.iter() }.any(|id| Some(id.as_str()) == own_id),
            }
        };
        let mut ids: Vec<&str> = own_id.into_iter().collect();
        for (object, differences) in &self.objects {
            if is_own(object) {
                let (provider, account, id) =
                    (object.provider, object.account, &object.external_id);
                print_wrapped(&format!("    {provider}: {id}, payment account {account}"));
            } else if !is_of_payment(object) {
                continue;
            }
            ids.push(&object.external_id);
            for difference in differences {
                print_wrapped(&format!("    {}", describe_difference(object, difference)));
            }
            if object.state != ObjectState::Applied {
                print_wrapped(&format!("    {}", describe_object(object)));
            }
        }
        let is_about = |id: &String| ids.contains(&id.as_str());
        for command in { self.commands.iter() }.filter(|found| is_about(&found.external_id)) {
            print_wrapped(&format!("    {}", describe_command(command)));
        }
        for notification in &self.notifications {
            let object = notification.content.object.as_ref();
            if object.is_some_and(|object| is_about(&object.id)) {
                print_wrapped(&format!("    {}", describe_notification(notification)));
            }
        }
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
fn live<T>(records: &[WithDeletedAt<T>]) -> impl Iterator<Item = &T> {
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

fn describe_difference(object: &SupportedObject, difference: &FactDifference) -> String {
    let SupportedObject {
        provider,
        kind,
        external_id,
        ..
    } = object;
    let text = |value: &String| value.parse().map_or_else(|_| value.clone(), date);
    let (field, reported) = (difference.field, text(&difference.reported));
    let recorded = text(&difference.recorded);
    format!(
        "differs: {provider} reports {field} {reported} for {kind} {external_id}, the record has {recorded}"
    )
}

/// Describes an object that is not applied.
pub fn describe_object(object: &SupportedObject) -> String {
    let SupportedObject {
        provider,
        kind,
        external_id,
        ..
    } = object;
    let state = object.state.as_str();
    let attempts = match object.attempts {
        0 => String::new(),
        number => format!(", {}", pluralize(number, "failed attempt")),
    };
    let reason = object.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{state}: {provider} {kind} {external_id}{attempts}{reason}")
}

/// Describes a command that is not acknowledged.
pub fn describe_command(command: &PendingCommand) -> String {
    let PendingCommand {
        provider,
        external_id,
        command: name,
        ..
    } = command;
    let since = date(command.created_at);
    let attempts = pluralize(command.attempts, "failed attempt");
    let reason = command.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!(
        "not acknowledged by {provider}: {name} {external_id}, since {since}, {attempts}{reason}"
    )
}

fn describe_notification(notification: &PaymentNotification) -> String {
    let content = &notification.content;
    let (id, state, kind) = (notification.id, content.state, &content.event_type);
    let reason = content.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("notification {id}, {kind}, {state}{reason}")
}

/// [`ProviderReport`] as JSON.
#[derive(Debug, Serialize)]
pub struct ProviderReportJson {
    #[serde(rename = "payment_objects")]
    objects: Vec<PaymentObjectJson>,
    #[serde(rename = "payment_commands")]
    commands: Vec<PaymentCommandJson>,
    /// Those that are waiting, failed or refused.
    #[serde(rename = "payment_notifications")]
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
