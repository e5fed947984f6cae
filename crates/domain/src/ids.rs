//! Identifiers: a UUID that knows what it identifies.
//!
//! Shown as a prefix and 32 hexadecimal digits (`plan_0192…`), so that a log line or a pasted id
//! says what it is, and an id of the wrong kind is caught at the door. Input is also accepted as a
//! bare UUID. They are UUIDv7: made in the order of time, which keeps indexes compact.

use std::{fmt, hash::Hash, str::FromStr};

use uuid::{Uuid, fmt::Simple};

use crate::{Invalid, Rule, words::quoted};

/// What all kinds of identifier have in common.
pub trait Id: Copy + Eq + Hash + fmt::Display + FromStr<Err = Invalid> {
    /// The prefix without its underscore: `plan`.
    const PREFIX: &'static str;
    /// Gives a UUID its meaning.
    fn new(uuid: Uuid) -> Self;
    /// The UUID as the database stores it.
    fn uuid(self) -> Uuid;
}

fn parse(prefix: &str, kind: &str, text: &str) -> Result<Uuid, Invalid> {
    let refuse = |message| Err(Invalid::new(Rule::InvalidId, message));
    let digits = match text.rsplit_once('_') {
        Some((found, digits)) if found == prefix => digits,
        Some((found, _)) => {
            return refuse(format!(
                "{} does not identify {kind}: expected the prefix \"{prefix}_\", found {}",
                quoted(text),
                quoted(&format!("{found}_"))
            ));
        }
        None => text,
    };
    // `Uuid` also reads braces and "urn:uuid:"; an id has one way to be written, or two.
    let plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match Uuid::try_parse(digits) {
        Ok(uuid) if plain && !uuid.is_nil() => Ok(uuid),
        _ => refuse(format!(
            "{} does not identify {kind}: expected \"{prefix}_\" and 32 hexadecimal digits, or a UUID",
            quoted(text)
        )),
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal, $kind:literal;)*) => {$(
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
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                parse($prefix, $kind, text).map(Self)
            }
        }
    )*};
}

ids! {
    /// A tenant: the owner of all data.
    TenantId = "ten", "a tenant";
    /// A client: one calling application of a tenant.
    ClientId = "cli", "a client";
    /// An end user.
    UserId = "usr", "a user";
    /// A session: one sign-in of a user on one device.
    SessionId = "ses", "a session";
    /// A subscription plan.
    PlanId = "plan", "a plan";
    /// A subscription: a user has a plan.
    SubscriptionId = "sub", "a subscription";
    /// A payment for a subscription.
    PaymentId = "pay", "a payment";
    /// An event: one change of state, recorded.
    EventId = "evt", "an event";
    /// A request that we named, because its caller did not.
    RequestId = "req", "a request";
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "01920000-0000-7000-8000-000000000001";

    #[test]
    fn reads_both_forms_and_shows_one() {
        let shown = "plan_01920000000070008000000000000001";
        for text in [shown, UUID, "01920000000070008000000000000001"] {
            assert_eq!(text.parse::<PlanId>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn refuses_another_kind_and_nonsense() {
        let wrong = "cli_01920000000070008000000000000001".parse::<PlanId>();
        assert!(
            wrong
                .unwrap_err()
                .message
                .contains("expected the prefix \"plan_\"")
        );
        let nil = "00000000-0000-0000-0000-000000000000";
        for text in [
            "",
            "plan_",
            nil,
            "{01920000-0000-7000-8000-000000000001}",
            "plan_1\u{0}",
        ] {
            assert_eq!(text.parse::<PlanId>().unwrap_err().rule, Rule::InvalidId);
        }
    }
}
