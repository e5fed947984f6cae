//! What a payment provider reports about a subscription.

use jiff::Timestamp;

use super::fact_fields::{
    Fact, FactFields, FieldWriter, optional, optional_integer, optional_time, required,
    required_money,
};
use crate::{
    BillingCycle, ExternalId, FieldError, Money, Quantity, Rfc3339Timestamp, Rule,
    SubscriptionStatus, ValidationError,
};

/// A subscription as the payment provider reports it. Timestamps have microseconds at most.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionFact {
    /// The payment provider's identifier.
    pub external_id: ExternalId,
    /// What was bought.
    pub plan: PlanReference,
    /// Units of the plan.
    pub quantity: Quantity,
    /// Price and billing cycle; `None` if the payment provider does not report them, or if the cycle is
    /// none of ours. Then the plan's apply.
    pub price: Option<ReportedPrice>,
    /// The status in our words.
    pub status: SubscriptionStatus,
    /// Start of the subscription.
    pub starts_at: Timestamp,
    /// The next charge: the renewal, or while a payment is late possibly its next attempt.
    pub renews_at: Option<Timestamp>,
    /// The end, also if it is in the future.
    pub ends_at: Option<Timestamp>,
    /// The end of the trial, also after it.
    pub trial_ends_at: Option<Timestamp>,
    /// Since when a payment is late; only used while the status is past due or unpaid. Default: when
    /// the service first learned of it.
    pub late_since: Option<Timestamp>,
}

/// The payment provider's identifiers of what a subscription is to. They select a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanReference {
    /// A price or variant: one of a plan's `variants`.
    pub variant: ExternalId,
    /// The product: a plan's `product_id`.
    pub product: Option<ExternalId>,
}

/// The price of one billing cycle, for one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedPrice {
    /// The price, in the currency that the subscriber pays.
    pub amount: Money,
    /// The billing cycle.
    pub billing_cycle: BillingCycle,
}

impl SubscriptionFact {
    /// Returns whether the plan must be looked up: `last` is unknown, something else was bought since, or
    /// the price is no longer reported. Otherwise the subscription keeps its plan, even if two plans have
    /// the same variant by now.
    pub fn selects_plan(&self, last: Option<&Self>) -> bool {
        last.is_none_or(|last| {
            last.plan != self.plan || (last.price.is_some() && self.price.is_none())
        })
    }
}

impl Fact for SubscriptionFact {
    fn status_rank(&self) -> u8 {
        match self.status {
            SubscriptionStatus::Pending => 0,
            SubscriptionStatus::OnTrial => 1,
            SubscriptionStatus::Active => 2,
            SubscriptionStatus::Paused => 3,
            SubscriptionStatus::PastDue => 4,
            SubscriptionStatus::Unpaid => 5,
            SubscriptionStatus::Cancelled => 6,
            SubscriptionStatus::Expired => 7,
        }
    }

    fn to_fields(&self) -> FactFields {
        let price = self.price;
        FieldWriter::default()
            .set("external_id", &self.external_id)
            .set("variant", &self.plan.variant)
            .set_some("product", self.plan.product.as_ref())
            .set("quantity", &self.quantity.get())
            .set_some("price", price.map(|price| price.amount))
            .set_some("currency", price.map(|price| price.amount.currency()))
            .set_some("billing_cycle", price.map(|price| price.billing_cycle))
            .set("status", &self.status)
            .set_time("starts_at", Some(self.starts_at))
            .set_time("renews_at", self.renews_at)
            .set_time("ends_at", self.ends_at)
            .set_time("trial_ends_at", self.trial_ends_at)
            .set_time("late_since", self.late_since)
            .finish()
    }

    fn from_fields(fields: &FactFields) -> Result<Self, FieldError> {
        let price = match optional(fields, "billing_cycle")? {
            Some(billing_cycle) => Some(ReportedPrice {
                amount: required_money(fields, "price")?,
                billing_cycle,
            }),
            None => None,
        };
        let quantity = optional_integer(fields, "quantity")?
            .ok_or_else(|| ValidationError::new(Rule::Required, "is required"))
            .and_then(Quantity::try_from)
            .map_err(|error| ("quantity", error))?;
        Ok(Self {
            external_id: required(fields, "external_id")?,
            plan: PlanReference {
                variant: required(fields, "variant")?,
                product: optional(fields, "product")?,
            },
            quantity,
            price,
            status: required(fields, "status")?,
            starts_at: required::<Rfc3339Timestamp>(fields, "starts_at")?.get(),
            renews_at: optional_time(fields, "renews_at")?,
            ends_at: optional_time(fields, "ends_at")?,
            trial_ends_at: optional_time(fields, "trial_ends_at")?,
            late_since: optional_time(fields, "late_since")?,
        })
    }
}
