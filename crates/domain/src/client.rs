//! Clients (API keys): their kinds and scopes.

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

    /// Returns the scopes that a client of this kind can have. They are also its default.
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
    }
}
