//! Access policies: which clients can call an endpoint, and whether a user must be signed in.

use perennial_domain::{ClientKind, Scope, StaffRole};

/// The requirements of an endpoint, as a type parameter of [`Caller`](super::Caller).
pub trait AccessPolicy: Send + Sync {
    /// The scope that the client must have.
    const SCOPE: Scope;
    /// The scope that a publishable client must have instead.
    const PUBLISHABLE_SCOPE: Scope = Self::SCOPE;
    /// Scopes that the client must have too.
    const ADDITIONAL_SCOPES: &'static [Scope] = &[];
    /// The roles of the staff members that can call the endpoint, if the role has the scopes.
    const STAFF_ROLES: &'static [StaffRole] = &StaffRole::ALL;
    /// The kinds of client that can call the endpoint.
    const KINDS: &'static [ClientKind];
    /// How the endpoint treats a user's access token.
    const USER: UserAuth;
}

/// How an endpoint treats the `Authorization` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserAuth {
    /// The header is not read.
    Ignored,
    /// With a token, the response is limited to what the user can see.
    Optional,
    /// A valid token is required.
    Required,
    /// A valid token is required from a publishable client and optional for a secret one. With a
    /// token, the response is limited to the user's own data.
    RequiredUnlessSecret,
    /// A valid token is required from a publishable client. A secret client's request with the header is
    /// rejected.
    SelfService,
    /// A request with the header is rejected.
    Forbidden,
}

/// Declares one policy type per line: name, scope, kinds of client, user authentication.
macro_rules! access_policies {
    ($($(#[$doc:meta])* $name:ident: $scope:ident, $($kind:ident)|+, $user:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl AccessPolicy for $name {
            const SCOPE: Scope = Scope::$scope;
            const KINDS: &'static [ClientKind] = &[$(ClientKind::$kind,)+];
            const USER: UserAuth = UserAuth::$user;
        }
    )*};
}

access_policies! {
    /// Read plans. Publishable clients and users get active plans only.
    PlansRead: PlansRead, Secret | Publishable, Optional;
    PlansWrite: PlansWrite, Secret, Forbidden;
    /// Sign up, sign in and refresh tokens.
    SignIn: Auth, Secret | Publishable, Ignored;
    /// Manage the signed-in user's sessions and account.
    SignedInUser: Auth, Secret | Publishable, Required;
    SubscriptionsRead: SubscriptionsRead, Secret | Publishable, RequiredUnlessSecret;
    /// Read the entitlements of any user.
    EntitlementsRead: SubscriptionsRead, Secret, Optional;
    /// Count all subscriptions of the tenant.
    SubscriptionCounts: SubscriptionsRead, Secret, Forbidden;
    /// Read what happens next to any subscriptions.
    SubscriptionForecasts: SubscriptionsRead, Secret, Forbidden;
    /// Read the signed-in user's entitlements, or as a server those of a user by the client's own id.
    OwnEntitlements: SubscriptionsRead, Secret | Publishable, RequiredUnlessSecret;
    SubscriptionsWrite: SubscriptionsWrite, Secret, Forbidden;
    PaymentsRead: PaymentsRead, Secret | Publishable, RequiredUnlessSecret;
    PaymentsWrite: PaymentsWrite, Secret, Forbidden;
    UsersRead: UsersRead, Secret, Optional;
    UsersWrite: UsersWrite, Secret, Forbidden;
    /// Read the sessions and identities of any user.
    UserSignIns: UsersRead, Secret, Forbidden;
    EventsRead: EventsRead, Secret, Forbidden;
    WebhooksRead: WebhooksRead, Secret, Forbidden;
    WebhooksWrite: WebhooksWrite, Secret, Forbidden;
    PaymentAccountsRead: PaymentAccountsRead, Secret, Forbidden;
    PaymentAccountsWrite: PaymentAccountsWrite, Secret, Forbidden;
    ReportsRead: ReportsRead, Secret, Forbidden;
    ClientsRead: ClientsRead, Secret, Forbidden;
    ClientsWrite: ClientsWrite, Secret, Forbidden;
    IdentityProvidersRead: IdentityProvidersRead, Secret, Forbidden;
    IdentityProvidersWrite: IdentityProvidersWrite, Secret, Forbidden;
    HealthRead: HealthRead, Secret, Forbidden;
    SandboxWrite: SandboxWrite, Secret, Forbidden;
    StaffRead: StaffRead, Secret, Forbidden;
    StaffWrite: StaffWrite, Secret, Forbidden;
}

/// Update any subscription as a server, or as a user cancel one's own. The tenant's setting decides about
/// users, so that the scope with which a page reads subscriptions is enough.
#[derive(Debug)]
pub enum SubscriptionsUpdate {}

impl AccessPolicy for SubscriptionsUpdate {
    const SCOPE: Scope = Scope::SubscriptionsWrite;
    const PUBLISHABLE_SCOPE: Scope = Scope::SubscriptionsRead;
    const KINDS: &'static [ClientKind] = &[ClientKind::Secret, ClientKind::Publishable];
    const USER: UserAuth = UserAuth::SelfService;
}

/// Erase a user. Scopes of clients are stored, so a separate scope would take the endpoint away from existing API
/// keys. For staff members, only admins can do what cannot be undone.
#[derive(Debug)]
pub enum UsersErase {}

impl AccessPolicy for UsersErase {
    const SCOPE: Scope = Scope::UsersWrite;
    const STAFF_ROLES: &'static [StaffRole] = &[StaffRole::Admin];
    const KINDS: &'static [ClientKind] = &[ClientKind::Secret];
    const USER: UserAuth = UserAuth::Forbidden;
}

/// Read everything that is stored about a user.
#[derive(Debug)]
pub enum UsersExport {}

impl AccessPolicy for UsersExport {
    const SCOPE: Scope = Scope::UsersRead;
    const ADDITIONAL_SCOPES: &'static [Scope] = &[
        Scope::SubscriptionsRead,
        Scope::PaymentsRead,
        Scope::EventsRead,
    ];
    const KINDS: &'static [ClientKind] = &[ClientKind::Secret];
    const USER: UserAuth = UserAuth::Forbidden;
}

/// Read what is known about a user and their subscriptions.
#[derive(Debug)]
pub enum TimelineRead {}

impl AccessPolicy for TimelineRead {
    const SCOPE: Scope = Scope::UsersRead;
    const ADDITIONAL_SCOPES: &'static [Scope] = &[Scope::SubscriptionsRead];
    const KINDS: &'static [ClientKind] = &[ClientKind::Secret];
    const USER: UserAuth = UserAuth::Optional;
}
