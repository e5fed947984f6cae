//! Commands to payment providers: a change here that a payment provider must follow, such as a cancellation.
//!
//! A command is stored in the transaction of the change, so neither exists without the other. The queue task in
//! `payment_accounts/command_worker.rs` sends it until the provider acknowledges it.

use jiff::Timestamp;
use perennial_domain::{Id, SubscriptionId, SubscriptionStatus, TenantId, UserId};

use crate::db::{Error, Transaction};

pub mod table;

/// A change of a subscription that a payment provider must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentProviderCommand {
    /// Cancel at the end of the period, or at another time if the provider can.
    Cancel,
    /// Undo a cancellation before the end of the period.
    Resume,
    /// End the subscription at once, or at the end of the period if the provider cannot.
    End,
}

impl PaymentProviderCommand {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Resume => "resume",
            Self::End => "end",
        }
    }

    /// Returns the command with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Cancel, Self::Resume, Self::End]
            .into_iter()
            .find(|command| command.as_str() == name)
    }

    /// Returns the command for a change of status, if the provider must follow it. `has_end` is whether the request states
    /// when a cancellation takes effect, which may also change.
    pub fn for_change(
        before: SubscriptionStatus,
        after: SubscriptionStatus,
        has_end: bool,
    ) -> Option<Self> {
        use SubscriptionStatus::{Active, Cancelled, Expired, OnTrial};
        match (before, after) {
            (Cancelled, Active | OnTrial) => Some(Self::Resume),
            (Cancelled, Cancelled) if has_end => Some(Self::Cancel),
            (before, Cancelled) if !matches!(before, Cancelled | Expired) => Some(Self::Cancel),
            // Cancelling a subscription that is late or gives no access ends it immediately.
            (before, Expired) if before != Expired => Some(Self::End),
            _ => None,
        }
    }
}

/// Stores a command about a locked subscription if a payment account with an API key runs it. `ends_at` is when a cancellation
/// takes effect, if not at the end of the period.
pub async fn enqueue(
    tx: &Transaction<'_>,
    tenant: TenantId,
    subscription: SubscriptionId,
    command: PaymentProviderCommand,
    ends_at: Option<Timestamp>,
) -> Result<(), Error> {
    let command = (command.as_str(), ends_at);
    table::enqueue(tx, tenant.uuid(), subscription.uuid(), command).await
}

/// Stores commands that end all subscriptions of a user that payment accounts with an API key run.
pub async fn end_all_for_user(
    tx: &Transaction<'_>,
    tenant: TenantId,
    user: UserId,
) -> Result<(), Error> {
    let command = PaymentProviderCommand::End.as_str();
    table::enqueue_for_user(tx, tenant.uuid(), user.uuid(), command).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_follows_from_the_change_of_status() {
        use SubscriptionStatus::{Active, Cancelled, Expired, OnTrial, PastDue, Paused};
        for (before, after, expected) in [
            (Active, Cancelled, Some(PaymentProviderCommand::Cancel)),
            (OnTrial, Cancelled, Some(PaymentProviderCommand::Cancel)),
            (Cancelled, Active, Some(PaymentProviderCommand::Resume)),
            (Cancelled, OnTrial, Some(PaymentProviderCommand::Resume)),
            (Cancelled, Cancelled, None),
            (Active, Paused, None),
            (Active, Expired, Some(PaymentProviderCommand::End)),
            (PastDue, Expired, Some(PaymentProviderCommand::End)),
            (Paused, Expired, Some(PaymentProviderCommand::End)),
            (Cancelled, Expired, Some(PaymentProviderCommand::End)),
            (Expired, Expired, None),
            (Expired, Active, None),
            (Expired, Cancelled, None),
        ] {
            let command = PaymentProviderCommand::for_change(before, after, false);
            assert_eq!(command, expected, "{before} to {after}");
        }
        let moved = PaymentProviderCommand::for_change(Cancelled, Cancelled, true);
        assert_eq!(moved, Some(PaymentProviderCommand::Cancel));
    }

    #[test]
    fn command_is_found_by_its_name() {
        for command in [
            PaymentProviderCommand::Cancel,
            PaymentProviderCommand::Resume,
            PaymentProviderCommand::End,
        ] {
            assert_eq!(
                PaymentProviderCommand::from_name(command.as_str()),
                Some(command)
            );
        }
        assert_eq!(PaymentProviderCommand::from_name("pause"), None);
    }
}
