//! Prints what payment providers report, for `user show`, `subscription show` and `payment-account show`.

use perennial_domain::{ExternalId, FactDifference, Id, Payment, Subscription};

use super::{explain::date, pluralize, terminal::print_wrapped};
use crate::{
    payment_accounts::{
        notifications_sql::PaymentNotification,
        support_sql::{ObjectState, PendingCommand, SupportedObject},
    },
    user_export::{ProviderReport, WithDeletedAt, live},
};

impl ProviderReport {
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
