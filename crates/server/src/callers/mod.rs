//! Who is calling, and what it may do.
//!
//! A **tenant** owns all data. A **client** is one calling application of a tenant, known by the
//! header `client-id`: a *secret* client is a server and may do what its scopes name; a
//! *publishable* one lives in a browser or an app, where anybody can read its id, and so may do next
//! to nothing by itself. An endpoint says what it needs in its signature (`Caller<PlansWrite>`); no
//! handler runs without.
//!
//! A client may call **on behalf of a user**, whose access token it sends as a bearer. Such a token is one of
//! ours ([`tokens`]), and its session must live ([`sessions`]).
//!
//! The directory of tenants and clients is in the home database, also for tenants whose data is in
//! another cell.

use axum::http::HeaderValue;
use ipnet::IpNet;
use perennial_domain::{ClientId, ClientKind, Currency, Lifecycle, Scope, TenantId};

use crate::http::rate::Count;

mod attempts;
mod bearer;
mod caller;
pub mod clients;
mod directory;
pub mod gate;
pub mod housekeeping;
mod operator;
pub mod sessions;
pub mod tenants;
pub mod tokens;

pub use attempts::{Attempts, Source};
pub use bearer::{Bearers, KnowsBearers};
pub use caller::{
    Caller, EntitlementsRead, Need, OwnEntitlements, PaymentsRead, PaymentsWrite, PlansRead,
    PlansWrite, SignIn, SignedInUser, SubscriptionsRead, SubscriptionsWrite, UsersRead, UsersWrite,
};
pub use directory::Directory;
pub use gate::Gate;
pub use operator::Operator;

/// The owner of data.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Its identifier.
    pub id: TenantId,
    /// Where its data is.
    pub cell: String,
    /// The currency of amounts that name none.
    pub default_currency: Currency,
    /// How many seconds ago a user must have signed in at most to delete the account; 0 for any time.
    pub recent_sign_in: i32,
    /// Who moves time for its subscriptions.
    pub lifecycle: Lifecycle,
}

/// A calling application.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its identifier, which may be shown; not the header's value.
    pub id: ClientId,
    /// Where it runs.
    pub kind: ClientKind,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// From where it may call; empty for anywhere.
    pub allow_addresses: Vec<IpNet>,
    /// Web pages that may use it.
    pub allowed_origins: Vec<String>,
}

impl Client {
    /// Whether a page of this origin may use it.
    fn is_page(&self, origin: &HeaderValue) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == origin)
    }
}

/// What the header `client-id` stands for.
#[derive(Debug, Clone)]
pub struct Known {
    /// Whose data it is about.
    pub tenant: Tenant,
    /// Who calls.
    pub client: Client,
    /// What it has sent.
    requests: Count,
}
