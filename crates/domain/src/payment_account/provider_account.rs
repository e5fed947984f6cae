//! Payment accounts: a tenant's accounts with payment providers, and the notifications that they receive.

use jiff::Timestamp;

use crate::{AsciiToken, PaymentAccountId, Rule, SingleLine, ValidationError};

string_enum! {
    /// A payment provider.
    pub enum PaymentProvider: "a payment provider" {
        /// Stripe Billing.
        Stripe = "stripe",
        /// Lemon Squeezy.
        LemonSqueezy = "lemonsqueezy",
    }
}

impl PaymentProvider {
    /// Returns whether an account cannot be followed without an API key. Stripe's objects have no version, so notifications
    /// alone do not tell which state is the latest.
    pub const fn requires_api_key(self) -> bool {
        match self {
            Self::Stripe => true,
            Self::LemonSqueezy => false,
        }
    }

    /// Returns whether the provider chooses the secret that signs notifications. Otherwise the tenant does.
    pub const fn issues_secrets(self) -> bool {
        match self {
            Self::Stripe => true,
            Self::LemonSqueezy => false,
        }
    }

    /// Returns how API keys start, or nothing if that is not known.
    pub const fn api_key_prefixes(self) -> &'static [&'static str] {
        match self {
            Self::Stripe => &["rk_test_", "sk_test_", "rk_live_", "sk_live_"],
            Self::LemonSqueezy => &[],
        }
    }

    /// Checks the form of an API key as far as it is known: a key of Stripe tells its mode.
    pub fn check_api_key(self, mode: PaymentMode, key: &str) -> Result<(), ValidationError> {
        let wrong_part = match (self, mode) {
            (Self::Stripe, PaymentMode::Test) => "_live_",
            (Self::Stripe, PaymentMode::Live) => "_test_",
            (Self::LemonSqueezy, _) => return Ok(()),
        };
        if key.contains(wrong_part) {
            let message = format!("must be a key of the account's mode, {mode}");
            return Err(ValidationError::new(Rule::InvalidFormat, message));
        }
        Ok(())
    }

    /// Checks the form of a secret that signs notifications.
    pub fn check_secret(self, secret: &str) -> Result<(), ValidationError> {
        let (is_valid, expected) = match self {
            Self::Stripe => (
                secret
                    .strip_prefix("whsec_")
                    .is_some_and(|key| !key.is_empty()),
                "must start with whsec_",
            ),
            Self::LemonSqueezy => (
                (MIN_CHOSEN_SECRET..=MAX_CHOSEN_SECRET).contains(&secret.len()),
                "must have 6 to 40 characters",
            ),
        };
        if is_valid {
            return Ok(());
        }
        Err(ValidationError::new(Rule::InvalidFormat, expected))
    }
}

/// The lengths of a secret that Lemon Squeezy accepts.
const MIN_CHOSEN_SECRET: usize = 6;
const MAX_CHOSEN_SECRET: usize = 40;

string_enum! {
    /// Whether the payments of an account are real.
    pub enum PaymentMode: "a mode of a payment account" {
        /// For development: no money moves.
        Test = "test",
        /// For production.
        Live = "live",
    }
}

string_enum! {
    /// What a payment provider has an id for.
    pub enum PaymentObjectKind: "a kind of object" {
        /// A subscription.
        Subscription = "subscription",
        /// An invoice of a subscription.
        Invoice = "invoice",
        /// A one-time order.
        Order = "order",
        /// A payment, which leads to the invoice that it pays.
        PaymentIntent = "payment_intent",
        /// A charge without a payment intent, of older accounts.
        Charge = "charge",
        /// A refund, which leads to the payment that it refunds.
        Refund = "refund",
        /// A dispute, which leads to the payment that is disputed.
        Dispute = "dispute",
        /// A customer, which belongs to a user.
        Customer = "customer",
    }
}

string_enum! {
    /// The state of a received notification.
    pub enum NotificationState: "a state of a notification" {
        /// Stored, and not processed yet.
        New = "new",
        /// Processed.
        Done = "done",
        /// Of a type that changes no record.
        Ignored = "ignored",
        /// Waits for a user or a plan to appear.
        Waiting = "waiting",
        /// Could not be read. The reason names the field.
        Failed = "failed",
        /// For another mode, or for another store of the provider.
        Refused = "refused",
    }
}

/// The fields of a payment account that clients set, except its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentAccountDetails {
    /// A note for operators.
    pub description: Option<SingleLine<200>>,
    /// The provider's id of the account or store. Notifications that name another one are refused.
    pub external_account_id: Option<AsciiToken<255>>,
    /// Whether a customer without a user gets one. Otherwise the subscription waits for a user.
    pub creates_users: bool,
}

/// A tenant's account with a payment provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentAccount {
    /// The account's id.
    pub id: PaymentAccountId,
    /// The payment provider. Cannot change.
    pub provider: PaymentProvider,
    /// Whether payments are real. Cannot change.
    pub mode: PaymentMode,
    /// The fields that clients set.
    pub details: PaymentAccountDetails,
    /// Whether an API key is stored.
    pub has_api_key: bool,
    /// Whether a secret is stored. Without one, no notification is accepted.
    pub has_secret: bool,
    /// When a notification was received. Exact to a minute.
    pub last_heard_at: Option<Timestamp>,
    /// When all objects were compared with those of the provider.
    pub last_reconciled_at: Option<Timestamp>,
    /// Commands that the payment provider has not acknowledged yet.
    pub pending_commands: i64,
    /// When the account was created.
    pub created_at: Timestamp,
    /// Time of the last change by a request.
    pub updated_at: Timestamp,
}

/// Returns why a notification is refused: it is for another mode than `expected_mode`, or names another account of the
/// provider than `expected_account`. A notification that names none is accepted, and so is any if none is expected.
pub fn refusal_reason(
    expected_mode: PaymentMode,
    expected_account: Option<&str>,
    mode: Option<PaymentMode>,
    account: Option<&str>,
) -> Option<&'static str> {
    if mode.is_some_and(|mode| mode != expected_mode) {
        return Some(match expected_mode {
            PaymentMode::Test => "is for live mode, and the account is for test mode",
            PaymentMode::Live => "is for test mode, and the account is for live mode",
        });
    }
    let is_other = matches!((expected_account, account), (Some(expected), Some(account)) if expected != account);
    is_other.then_some("names another account or store than external_account_id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_must_have_the_form_of_its_provider() {
        let check = |provider: PaymentProvider, secret: &str| provider.check_secret(secret).is_ok();
        assert!(check(PaymentProvider::Stripe, "whsec_x"));
        for invalid in ["", "whsec_", "sk_test_x"] {
            assert!(!check(PaymentProvider::Stripe, invalid), "{invalid}");
        }
        assert!(check(PaymentProvider::LemonSqueezy, "123456"));
        for invalid in ["", "12345", &"x".repeat(41)] {
            assert!(!check(PaymentProvider::LemonSqueezy, invalid), "{invalid}");
        }
    }

    #[test]
    fn api_key_of_the_other_mode_is_rejected() {
        let check = |mode, key: &str| PaymentProvider::Stripe.check_api_key(mode, key).is_ok();
        assert!(check(PaymentMode::Test, "sk_test_1") && check(PaymentMode::Live, "rk_live_1"));
        assert!(!check(PaymentMode::Test, "rk_live_1") && !check(PaymentMode::Live, "sk_test_1"));
        let lemon = PaymentProvider::LemonSqueezy;
        assert!(lemon.check_api_key(PaymentMode::Test, "a_live_b").is_ok());
    }

    #[test]
    fn notification_for_another_mode_or_account_is_refused() {
        use PaymentMode::{Live, Test};
        let refused =
            |expected, mode, account| refusal_reason(Test, expected, mode, account).is_some();
        assert!(!refused(None, None, None));
        assert!(!refused(None, Some(Test), Some("a")));
        assert!(!refused(Some("a"), Some(Test), Some("a")));
        assert!(!refused(Some("a"), Some(Test), None));
        assert!(refused(Some("a"), Some(Test), Some("b")));
        assert!(refused(None, Some(Live), None));
    }
}
