//! Typed identifiers: a UUID with a prefix that names its type.
//!
//! The canonical form is the prefix and 32 hexadecimal digits (`plan_0192…`). A bare UUID is also
//! accepted as input. New identifiers are UUIDv7, which are ordered by time and keep indexes compact.

use std::{fmt, hash::Hash, str::FromStr};

use uuid::{Uuid, fmt::Simple};

use crate::{Rule, ValidationError, suggest::quoted};

/// An identifier of one type of record.
pub trait Id: Copy + Eq + Hash + fmt::Display + FromStr<Err = ValidationError> {
    /// The prefix without its underscore: `plan`.
    const PREFIX: &'static str;
    /// Creates an identifier from a UUID.
    fn new(uuid: Uuid) -> Self;
    /// Returns the UUID, as it is stored in the database.
    fn uuid(self) -> Uuid;
}

/// Parses an identifier. `noun` is the record type with its article: "a plan".
fn parse(prefix: &str, noun: &str, text: &str) -> Result<Uuid, ValidationError> {
    let invalid = |message| Err(ValidationError::new(Rule::InvalidId, message));
    let digits = match text.rsplit_once('_') {
        Some((actual, digits)) if actual == prefix => digits,
        Some((actual, _)) => {
            return invalid(format!(
                "{} is not the id of {noun}; expected the prefix \"{prefix}_\", found {}",
                quoted(text),
                quoted(&format!("{actual}_"))
            ));
        }
        None => text,
    };
    // `Uuid` also parses braces and "urn:uuid:", which are not accepted here.
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match Uuid::try_parse(digits) {
        Ok(uuid) if is_plain && !uuid.is_nil() => Ok(uuid),
        _ => invalid(format!(
            "{} is not the id of {noun}; expected \"{prefix}_\" and 32 hexadecimal digits, or a UUID",
            quoted(text)
        )),
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $noun:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;

            fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(self.0.simple().encode_lower(&mut [0; Simple::LENGTH]))
            }
        }

        impl FromStr for $name {
            type Err = ValidationError;

            fn from_str(text: &str) -> Result<Self, ValidationError> {
                parse($prefix, $noun, text).map(Self)
            }
        }
    )*};
}

ids! {
    /// Identifies a tenant, which owns all other records.
    TenantId = "ten", "a tenant";
    /// Identifies a client (API key) of a tenant.
    ClientId = "cli", "a client";
    /// Identifies an end user.
    UserId = "usr", "a user";
    /// Identifies a session: one sign-in of a user on one device.
    SessionId = "ses", "a session";
    /// Identifies a staff member, who works with the console.
    StaffId = "stf", "a staff member";
    /// Identifies a subscription plan.
    PlanId = "plan", "a plan";
    /// Identifies a subscription of a user to a plan.
    SubscriptionId = "sub", "a subscription";
    /// Identifies a payment for a subscription.
    PaymentId = "pay", "a payment";
    /// Identifies an entry of a subscription's ledger.
    LedgerEntryId = "led", "a ledger entry";
    /// Identifies an event in the event log.
    EventId = "evt", "an event";
    /// Identifies a webhook endpoint.
    WebhookEndpointId = "whe", "a webhook endpoint";
    /// Identifies a replay of events to a webhook endpoint.
    WebhookReplayId = "whr", "a webhook replay";
    /// Identifies an identity provider of a tenant.
    IdentityProviderId = "idp", "an identity provider";
    /// Identifies a tenant's account with a payment provider.
    PaymentAccountId = "pac", "a payment account";
    /// Identifies a notification of a payment provider.
    PaymentNotificationId = "pnt", "a payment notification";
    /// Identifies an HTTP request that came without a request id.
    RequestId = "req", "a request";
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "01920000-0000-7000-8000-000000000001";

    #[test]
    fn all_accepted_forms_parse_to_the_canonical_form() {
        let canonical = "plan_01920000000070008000000000000001";
        for text in [canonical, UUID, "01920000000070008000000000000001"] {
            assert_eq!(text.parse::<PlanId>().unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn wrong_prefix_is_rejected_with_the_expected_one() {
        let error = "cli_01920000000070008000000000000001"
            .parse::<PlanId>()
            .unwrap_err();
        assert!(error.message.contains("expected the prefix \"plan_\""));
    }

    #[test]
    fn malformed_id_is_rejected() {
        for text in [
            "",
            "plan_",
            "00000000-0000-0000-0000-000000000000",
            "{01920000-0000-7000-8000-000000000001}",
            "plan_1\u{0}",
        ] {
            assert_eq!(text.parse::<PlanId>().unwrap_err().rule, Rule::InvalidId);
        }
    }
}
