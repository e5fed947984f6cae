//! Authentication and authorization of API requests.
//!
//! A **tenant** owns data. A **client** is an application of a tenant, identified by an API key in
//! the `client-id` header. A *secret* client is a server; its scopes define what it can do. A
//! *publishable* client runs in a browser or an app, where its key is public. Without a signed-in
//! user, it can only sign users up or in, refresh tokens and read active plans. Each endpoint
//! declares its [`AccessPolicy`] in its signature (`Caller<PlansWrite>`).
//!
//! A **staff member** ([`staff`]) calls the API from the console, with a cookie instead of an API key, and is treated like
//! a server with the scopes of the member's role. A [`Principal`] is a client or a staff member.
//!
//! A client can act **on behalf of a user** by sending the user's access token as a bearer token.
//! This service must have issued the token ([`tokens`]), and the token's session must be active
//! ([`sessions`]).
//!
//! The data of tenants can be spread over several databases, called cells. Tenants and clients are
//! stored in the home cell, even if the tenant's data is in another cell.

use axum::http::HeaderValue;
use ipnet::IpNet;
use perennial_domain::{
    ClientId, ClientKind, Currency, Lifecycle, Scope, SessionLifetimes, TenantId,
};
use sha2::{Digest, Sha256};

use crate::db::HOME;

mod auth_rate_limits;
mod authenticator;
mod caller;
mod client_cache;
mod client_lookup_sql;
mod client_middleware;
mod payment_account_cache;
mod payment_accounts_sql;
mod policy;
mod principal;
mod refusals;
pub mod sessions;
pub mod staff;
mod system_context;
pub mod tenants;
pub mod tokens;

pub use auth_rate_limits::{AuthRateLimits, RequestSource};
pub use authenticator::{Authenticator, HasAuthenticator};
pub use caller::Caller;
pub use client_cache::ClientCache;
pub use client_middleware::ClientMiddleware;
pub use payment_account_cache::{PaymentAccountCache, ReceivingAccount};
pub use payment_accounts_sql::notify_payment_account_changed;
pub use policy::{
    AccessPolicy, ClientsRead, ClientsWrite, EntitlementsRead, EventsRead, HealthRead,
    IdentityProvidersRead, IdentityProvidersWrite, OwnEntitlements, PaymentAccountsRead,
    PaymentAccountsWrite, PaymentsRead, PaymentsWrite, PlansRead, PlansWrite, ReportsRead,
    SandboxWrite, SignIn, SignedInUser, StaffRead, StaffWrite, SubscriptionCounts,
    SubscriptionForecasts, SubscriptionsRead, SubscriptionsUpdate, SubscriptionsWrite,
    TimelineRead, UserAuth, UserSignIns, UsersErase, UsersExport, UsersRead, UsersWrite,
    WebhooksRead, WebhooksWrite,
};
pub use principal::{Principal, ResolvedPrincipal};
pub use system_context::SystemContext;

/// Hashes an API key for storage. Keys have 256 random bits (or are not secret at all), so a
/// single round of SHA-256 is enough.
pub fn hash_api_key(api_key: &[u8]) -> [u8; 32] {
    Sha256::digest(api_key).into()
}

#[derive(Debug, Clone)]
pub struct Tenant {
    pub id: TenantId,
    /// Name of the cell that holds the tenant's data.
    pub cell: String,
    /// Currency of amounts sent without one.
    pub default_currency: Currency,
    /// Maximum age, in seconds, of the session with which a user deletes the account; 0 for no limit.
    pub recent_sign_in: i32,
    pub session_lifetimes: SessionLifetimes,
    /// Whether the service changes subscriptions itself or only records changes that clients report.
    pub lifecycle: Lifecycle,
    /// Whether users can cancel their own subscriptions, and undo that.
    pub self_service: bool,
}

impl Tenant {
    /// Creates a tenant in the home cell, with default settings.
    pub fn new(id: TenantId, default_currency: Currency) -> Self {
        Self {
            id,
            cell: HOME.to_owned(),
            default_currency,
            recent_sign_in: 0,
            session_lifetimes: SessionLifetimes::DEFAULT,
            lifecycle: Lifecycle::Recorded,
            self_service: false,
        }
    }
}

/// An application that calls the API.
#[derive(Debug, Clone)]
pub struct Client {
    /// Public identifier; not the API key.
    pub id: ClientId,
    pub kind: ClientKind,
    pub scopes: Vec<Scope>,
    /// Networks that requests must come from; empty for any.
    pub allow_addresses: Vec<IpNet>,
    /// Origins of web pages that may use a publishable client.
    pub allowed_origins: Vec<String>,
}

impl Client {
    /// Creates a client with the default scopes of its kind, usable from any address and no
    /// web page.
    pub fn new(id: ClientId, kind: ClientKind) -> Self {
        Self {
            id,
            kind,
            scopes: kind.default_scopes(),
            allow_addresses: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }

    fn allows_origin(&self, origin: &HeaderValue) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == origin)
    }
}
