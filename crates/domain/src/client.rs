//! Clients: the kinds of calling application and what each may do.

use std::{fmt, str::FromStr};

use crate::Invalid;

/// Where a client runs, and so how far its `client-id` is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientKind {
    /// A server. Its `client-id` is a secret and opens what its scopes name.
    Secret,
    /// A browser or an app. Its `client-id` can be read by anybody and opens next to nothing.
    Publishable,
}

impl ClientKind {
    /// The word that we store and return.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Publishable => "publishable",
        }
    }

    /// What every `client-id` of this kind that we make begins with.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Secret => "prn_sk_",
            Self::Publishable => "prn_pk_",
        }
    }

    /// The scopes that a client of this kind can have at all, and has unless told otherwise.
    pub fn scopes(self) -> Vec<Scope> {
        match self {
            Self::Secret => Scope::ALL.to_vec(),
            Self::Publishable => vec![
                Scope::Auth,
                Scope::PlansRead,
                Scope::SubscriptionsRead,
                Scope::PaymentsRead,
            ],
        }
    }
}

impl fmt::Display for ClientKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ClientKind {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "secret" => Ok(Self::Secret),
            "publishable" => Ok(Self::Publishable),
            _ => {
                let allowed = vec!["secret", "publishable"];
                Err(Invalid::unknown_word("a kind of client", text, allowed))
            }
        }
    }
}

macro_rules! scopes {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// One thing that a client may be allowed to do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Scope {$($(#[$doc])* $name,)*}

        impl Scope {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word that we store and return.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $word,)*}
            }
        }

        impl FromStr for Scope {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($word => Ok(Self::$name),)*
                    _ => Err(Invalid::unknown_word("a scope", text, vec![$($word,)*])),
                }
            }
        }
    };
}

scopes! {
    /// The authentication endpoints.
    Auth = "auth";
    /// Read plans.
    PlansRead = "plans:read";
    /// Create, change and delete plans.
    PlansWrite = "plans:write";
    /// Read subscriptions and entitlements.
    SubscriptionsRead = "subscriptions:read";
    /// Create, change and delete subscriptions.
    SubscriptionsWrite = "subscriptions:write";
    /// Read payments.
    PaymentsRead = "payments:read";
    /// Create, change and delete payments.
    PaymentsWrite = "payments:write";
    /// Look up users.
    UsersRead = "users:read";
    /// Create users.
    UsersWrite = "users:write";
    /// Read events.
    EventsRead = "events:read";
    /// Read webhook endpoints and their deliveries.
    WebhooksRead = "webhooks:read";
    /// Create, change and delete webhook endpoints.
    WebhooksWrite = "webhooks:write";
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
