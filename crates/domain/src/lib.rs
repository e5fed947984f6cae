//! Business rules for plans, subscriptions, payments, sessions, money and time.
//!
//! Everything in this crate is pure: no clock, randomness, network or database. The current time and
//! new identifiers are parameters, so every rule can be tested exhaustively and shared by endpoints,
//! commands and background tasks.
//!
//! Input is parsed into types that hold only valid values: a [`Slug`] is always well-formed, a
//! [`Money`] is always exact. Parsing errors are [`ValidationError`]s.

#![warn(missing_docs)]

#[macro_use]
mod string_enum;

mod billing_cycle;
mod card_number;
mod client;
mod currency;
mod email;
mod entitlement;
mod event;
mod event_types;
mod href;
mod ids;
mod metadata;
mod money;
mod payment;
mod payment_account;
mod plan;
mod revenue;
mod rfc3339;
mod session;
mod staff_role;
mod subscription;
mod suggest;
mod text;
mod user;
mod validation;
mod webhook;

pub use billing_cycle::BillingCycle;
pub use client::{ClientKind, GracePeriod, Scope};
pub use currency::Currency;
pub use email::{Email, EmailPrefix, ReportedEmail};
pub use entitlement::{Entitlements, Grant};
pub use event::EventKind;
pub use event_types::{EventTypePattern, EventTypes};
pub use href::Href;
pub use ids::{
    ClientId, EventId, Id, IdentityProviderId, LedgerEntryId, PaymentAccountId, PaymentId,
    PaymentNotificationId, PlanId, RequestId, SessionId, StaffId, SubscriptionId, TenantId, UserId,
    WebhookEndpointId, WebhookReplayId,
};
pub use metadata::{Metadata, MetadataChange};
pub use money::{Decimal, MAX_MINOR_UNITS, Money, SignedMoney, format_minor_units};
pub use payment::{
    FailureReason, FollowedPayment, NewPayment, Payment, PaymentChanges, PaymentStatus,
    PaymentUpdateError,
};
pub use payment_account::{
    DisputeState, Fact, FactDifference, FactFields, FetchLease, FetchedDecision, ListedDecision,
    NotificationState, PaymentAccount, PaymentAccountDetails, PaymentFact, PaymentMode,
    PaymentObjectKind, PaymentProvider, PlanReference, ReportedFact, ReportedPrice,
    SubscriptionFact, SyncState, lemon_squeezy_words, refusal_reason, stripe_words,
};
pub use plan::{Features, NodeQuota, Plan, PlanDetails, Slug, Tier, TrialDays, Variants};
pub use revenue::{
    CohortKey, CohortSums, Contribution, DayPayments, MovementKey, MovementKind, MovementSums,
    OutcomeKey, OutcomeKind, PaymentTotalKind, RecordedState, RevenueBasis, RevenueChange,
    RevenueFacts, RevenueState, RevenueStatus, Segment, StatusKey, SubscriptionSums, monthly_value,
};
pub use rfc3339::Rfc3339Timestamp;
pub use session::{RefreshDecision, Session, SessionLifetimes};
pub use staff_role::StaffRole;
pub use subscription::{
    AppliedChange, BillingChange, BillingPeriod, BillingSummary, Cancellation, CreateContext,
    DueTransition, Dunning, EntryCause, EntryType, ExternalId, FollowedSubscription, FreeTimeError,
    LedgerEntry, Lifecycle, LifecycleKind, NewSubscription, Offer, PaymentPosting, PlanSnapshot,
    Preview, Quantity, SelfServiceError, Subscription, SubscriptionChanges, SubscriptionStatus,
    SubscriptionUpdateError, Transition, Trial,
};
pub use suggest::suggest;
pub use text::{AsciiToken, MultiLine, SingleLine};
pub use user::{SessionUser, User, UserChanges};
pub use validation::{FieldError, Rule, ValidationError};
pub use webhook::{
    DeliveryOrder, DisabledReason, EndpointStatus, ResponseMeaning, WebhookEndpoint,
    WebhookEndpointDetails, can_be_given_up, is_failing_too_long, response_meaning, retry_delay,
};
