//! The kinds of change that are recorded.

use std::fmt;

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// What happened: one kind per change of state that the service makes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventKind {$($(#[$doc])* $name,)*}

        impl EventKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word that we store and send: the noun, a dot, what happened to it.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $word,)*}
            }
        }
    };
}

event_kinds! {
    /// A client was made.
    ClientCreated = "client.created";
    /// A client got a new `client-id`; the old one goes on until it expires.
    ClientRotated = "client.rotated";
    /// A client's old `client-id` ran out and was removed.
    ClientValueExpired = "client.value_expired";
    /// A client was switched off.
    ClientDisabled = "client.disabled";
    /// A payment was recorded.
    PaymentCreated = "payment.created";
    /// A payment was changed.
    PaymentUpdated = "payment.updated";
    /// A payment was deleted.
    PaymentDeleted = "payment.deleted";
    /// A plan was made.
    PlanCreated = "plan.created";
    /// A plan was changed.
    PlanUpdated = "plan.updated";
    /// A plan was deleted.
    PlanDeleted = "plan.deleted";
    /// An identity provider was listed for a tenant.
    ProviderAdded = "provider.added";
    /// An identity provider was taken from a tenant's list.
    ProviderRemoved = "provider.removed";
    /// A user signed in or signed up.
    SessionCreated = "session.created";
    /// A session was ended, and why.
    SessionRevoked = "session.revoked";
    /// A subscription was made.
    SubscriptionCreated = "subscription.created";
    /// A subscription was changed.
    SubscriptionUpdated = "subscription.updated";
    /// A subscription's next period, paid for or free, has begun.
    SubscriptionRenewed = "subscription.renewed";
    /// A subscription's next period has begun, and nobody has paid for it.
    SubscriptionPastDue = "subscription.past_due";
    /// Nobody has paid for a subscription for so long that it gives no access any more.
    SubscriptionUnpaid = "subscription.unpaid";
    /// A subscription passed its end, or nobody paid for it until it was over.
    SubscriptionExpired = "subscription.expired";
    /// A subscription was ended because its user's account was deleted. If it has an `external_subscription_id`, the
    /// provider goes on charging until it is told.
    SubscriptionEnded = "subscription.ended";
    /// A subscription was deleted.
    SubscriptionDeleted = "subscription.deleted";
    /// A tenant was made.
    TenantCreated = "tenant.created";
    /// A tenant's settings changed.
    TenantUpdated = "tenant.updated";
    /// A user was made: by signing up, or ahead of time by a server.
    UserCreated = "user.created";
    /// A user who was made ahead of time signed up.
    UserClaimed = "user.claimed";
    /// A user was erased: nothing says any more who it was.
    UserErased = "user.erased";
    /// A user's e-mail address changed at the identity provider.
    UserEmailChanged = "user.email_changed";
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
