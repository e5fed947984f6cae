//! Clients (API keys): their kinds and scopes, and the rotation of keys.

use jiff::SignedDuration;

use crate::{Rule, ValidationError};

string_enum! {
    /// Where a client runs, which determines how far its `client-id` is trusted.
    pub enum ClientKind: "a client kind" {
        /// A server. Its `client-id` is a secret and grants the client's scopes.
        Secret = "secret",
        /// A browser or an app. Its `client-id` is public, so its scopes are limited, and it can read
        /// subscriptions and payments only with the access token of the user they belong to.
        Publishable = "publishable",
    }
}

impl ClientKind {
    /// Returns the prefix of every generated `client-id` of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Secret => "prn_sk_",
            Self::Publishable => "prn_pk_",
        }
    }

    /// Returns the scopes that a client of this kind can have.
    pub fn allowed_scopes(self) -> Vec<Scope> {
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

    /// Returns the scopes of a client of this kind that is created without a list of scopes: all allowed ones, except
    /// those that manage access to the service.
    pub fn default_scopes(self) -> Vec<Scope> {
        let mut scopes = self.allowed_scopes();
        scopes.retain(|scope| !scope.is_administrative());
        scopes
    }
}

string_enum! {
    /// A permission of a client.
    pub enum Scope: "a scope" {
        /// Use the authentication endpoints.
        Auth = "auth",
        /// Read plans.
        PlansRead = "plans:read",
        /// Create, change and delete plans.
        PlansWrite = "plans:write",
        /// Read subscriptions and entitlements.
        SubscriptionsRead = "subscriptions:read",
        /// Create, change and delete subscriptions.
        SubscriptionsWrite = "subscriptions:write",
        /// Read payments.
        PaymentsRead = "payments:read",
        /// Create, change and delete payments.
        PaymentsWrite = "payments:write",
        /// Look up users.
        UsersRead = "users:read",
        /// Create users.
        UsersWrite = "users:write",
        /// Read events.
        EventsRead = "events:read",
        /// Read webhook endpoints and their deliveries.
        WebhooksRead = "webhooks:read",
        /// Create, change and delete webhook endpoints.
        WebhooksWrite = "webhooks:write",
        /// Read payment accounts and their notifications.
        PaymentAccountsRead = "payment_accounts:read",
        /// Create, change and delete payment accounts, and process notifications again.
        PaymentAccountsWrite = "payment_accounts:write",
        /// Read reports.
        ReportsRead = "reports:read",
        /// Read clients.
        ClientsRead = "clients:read",
        /// Create, change, rotate and disable clients.
        ClientsWrite = "clients:write",
        /// Read identity providers.
        IdentityProvidersRead = "identity_providers:read",
        /// Add, change and remove identity providers.
        IdentityProvidersWrite = "identity_providers:write",
        /// Read staff members.
        StaffRead = "staff:read",
        /// Invite, change and remove staff members.
        StaffWrite = "staff:write",
        /// Read the checks of the service's health.
        HealthRead = "health:read",
        /// Move the clock of a sandbox, and fill it with demo data.
        SandboxWrite = "sandbox:write",
    }
}

impl Scope {
    /// Returns whether the scope is about access to the service or its operation. A client has such a scope only if it
    /// is given explicitly.
    pub const fn is_administrative(self) -> bool {
        match self {
            Self::ClientsRead
            | Self::ClientsWrite
            | Self::IdentityProvidersRead
            | Self::IdentityProvidersWrite
            | Self::StaffRead
            | Self::StaffWrite
            | Self::HealthRead
            | Self::SandboxWrite => true,
            Self::Auth
            | Self::PlansRead
            | Self::PlansWrite
            | Self::SubscriptionsRead
            | Self::SubscriptionsWrite
            | Self::PaymentsRead
            | Self::PaymentsWrite
            | Self::UsersRead
            | Self::UsersWrite
            | Self::EventsRead
            | Self::WebhooksRead
            | Self::WebhooksWrite
            | Self::PaymentAccountsRead
            | Self::PaymentAccountsWrite
            | Self::ReportsRead => false,
        }
    }
}

/// How long the previous API key of a client works after a rotation: 0 seconds to 30 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GracePeriod(SignedDuration);

impl GracePeriod {
    /// The longest period, in seconds.
    pub const MAX_SECONDS: i64 = 30 * 24 * 3_600;
    /// The default: a day.
    pub const DEFAULT: Self = Self(SignedDuration::from_hours(24));

    /// Returns the duration.
    pub fn get(self) -> SignedDuration {
        self.0
    }
}

impl TryFrom<i64> for GracePeriod {
    type Error = ValidationError;

    fn try_from(seconds: i64) -> Result<Self, ValidationError> {
        if (0..=Self::MAX_SECONDS).contains(&seconds) {
            return Ok(Self(SignedDuration::from_secs(seconds)));
        }
        let message = format!("must be from 0 to {} seconds", Self::MAX_SECONDS);
        Err(ValidationError::new(Rule::OutOfRange, message))
    }
}
