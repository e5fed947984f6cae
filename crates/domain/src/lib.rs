//! What is true of plans, subscriptions, payments, clients, sessions, money and time.
//!
//! Everything here is pure: no clock, no randomness, no network, no database. An instant is a
//! parameter, an identifier is made by whoever calls. So a rule can be read, tested over its whole
//! grid, and used alike by an endpoint, a command and a background task.
//!
//! Input is *parsed* into these types, and what has the type needs no further check: a [`Slug`] is
//! always well-formed, a [`Money`] always exact. What does not parse says why in an [`Invalid`].

mod billing_cycle;
mod client;
mod email;
mod entitlement;
mod event;
mod href;
mod ids;
mod invalid;
mod moment;
mod money;
mod payment;
mod plan;
mod session;
mod subscription;
mod text;
mod words;

pub use billing_cycle::BillingCycle;
pub use client::{ClientKind, Scope};
pub use email::Email;
pub use entitlement::{Entitlements, Grant};
pub use event::EventKind;
pub use href::Href;
pub use ids::{
    ClientId, EventId, Id, PaymentId, PlanId, RequestId, SessionId, SubscriptionId, TenantId,
    UserId,
};
pub use invalid::{Invalid, Rule};
pub use moment::Moment;
pub use money::{Currency, Decimal, MAX_MINOR_UNITS, Money};
pub use payment::{NewPayment, Payment, PaymentChanges, PaymentRefused, PaymentStatus};
pub use plan::{Features, NewPlan, NodeQuota, Plan, Slug, Tier, Variants};
pub use session::{Refresh, Session, User};
pub use subscription::{
    Changes, Dunning, ExternalId, Lifecycle, NewSubscription, Offer, Paid, Refused, Status, Step,
    Subscription, Terms, Turn, Wrong,
};
pub use text::{Line, Prose, Word};
pub use words::closest;
