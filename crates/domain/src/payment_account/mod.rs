//! Payment accounts: a tenant's accounts with payment providers ([`PaymentAccount`]), what a payment provider reports, and
//! how records follow it.
//!
//! A [`Fact`] is what a payment provider reports about one object, in our words. Records are a function
//! of the latest fact: [`Subscription::follow`](crate::Subscription::follow) and
//! [`Payment::follow`](crate::Payment::follow) state it. [`SyncState`] decides which fact is the latest,
//! however notifications are ordered, repeated or lost.
//!
//! Each payment provider has one file with the meaning of its words and amounts: `stripe_words.rs`,
//! `lemon_squeezy_words.rs`. A new payment provider adds one more. Requests, JSON and signatures belong
//! to the server.

mod fact_difference;
mod fact_fields;
pub mod lemon_squeezy_words;
mod payment_fact;
mod provider_account;
mod provider_amount;
mod provider_word;
mod purchase;
pub mod stripe_words;
mod subscription_fact;
mod sync_state;

pub use fact_difference::FactDifference;
pub use fact_fields::{Fact, FactFields};
pub use payment_fact::{DisputeState, PaymentFact};
pub use provider_account::{
    NotificationState, PaymentAccount, PaymentAccountDetails, PaymentMode, PaymentObjectKind,
    PaymentProvider, refusal_reason,
};
pub use subscription_fact::{PlanReference, ReportedPrice, SubscriptionFact};
pub use sync_state::{FetchLease, FetchedDecision, ListedDecision, ReportedFact, SyncState};

#[cfg(test)]
mod tests;
