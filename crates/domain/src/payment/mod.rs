//! Payments: what was paid for a subscription.
//!
//! A payment is a record of what happened elsewhere, at a bank or a payment provider. Until money has come it can be
//! corrected; from then on the amount, the currency and what it was for are frozen, and only what becomes of the money
//! changes: it is given back, in part or in whole, or disputed.

use jiff::Timestamp;

use crate::{
    Currency, Decimal, ExternalId, Invalid, Money, PaymentId, Rule, SubscriptionId, Wrong,
};

mod status;

pub use status::PaymentStatus;

/// What somebody says of a payment when making one.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPayment {
    /// What it is for.
    pub subscription: SubscriptionId,
    /// How much.
    pub amount: Money,
    /// What the payment provider calls it.
    pub external_id: Option<ExternalId>,
    /// Where it stands. Default: pending.
    pub status: Option<PaymentStatus>,
    /// How much was given back. Default: what the status says.
    pub refunded: Option<Money>,
}

/// A payment as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Payment {
    /// Its identifier.
    pub id: PaymentId,
    /// What it is for.
    pub subscription: SubscriptionId,
    /// How much.
    pub amount: Money,
    /// What the payment provider calls it.
    pub external_id: Option<ExternalId>,
    /// Where it stands.
    pub status: PaymentStatus,
    /// How much was given back; `None` if some was and nobody said how much.
    pub refunded: Option<Money>,
    /// The beginning of the period that it has paid for, if it has paid for one. It pays for one at most, whatever
    /// becomes of it.
    pub period: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What was sent. `None` was left out; an inner `None` is null.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PaymentChanges {
    /// What it is for.
    pub subscription: Option<SubscriptionId>,
    /// How much, in whichever currency it then is.
    pub amount: Option<Decimal>,
    /// The currency.
    pub currency: Option<Currency>,
    /// What the payment provider calls it.
    pub external_id: Option<Option<ExternalId>>,
    /// Where it stands.
    pub status: Option<PaymentStatus>,
    /// How much was given back.
    pub refunded: Option<Option<Decimal>>,
}

/// Why a change was refused.
#[derive(Debug, Clone, PartialEq)]
pub enum PaymentRefused {
    /// Fields are not right.
    Fields(Vec<Wrong>),
    /// It cannot become that.
    Transition {
        /// Where it stands.
        from: PaymentStatus,
        /// Where it should have gone.
        to: PaymentStatus,
    },
    /// Money has come; these fields are frozen.
    Settled(Vec<&'static str>),
}

impl Payment {
    /// A new payment, made at `now`, or everything that is wrong with it.
    pub fn make(new: NewPayment, id: PaymentId, now: Timestamp) -> Result<Self, Vec<Wrong>> {
        let status = new.status.unwrap_or(PaymentStatus::Pending);
        let refunded =
            refund(status, new.amount, new.refunded, None).map_err(|wrong| vec![wrong])?;
        Ok(Self {
            id,
            subscription: new.subscription,
            amount: new.amount,
            external_id: new.external_id,
            status,
            refunded,
            period: None,
            created_at: now,
            updated_at: now,
        })
    }

    /// It with these changes from `now` on; `None` if they change nothing. What equals what it has is no instruction.
    pub fn amend(
        &self,
        sent: &PaymentChanges,
        now: Timestamp,
    ) -> Result<Option<Self>, PaymentRefused> {
        let mut next = self.clone();
        let fields = |wrong| PaymentRefused::Fields(vec![wrong]);
        if let Some(external_id) = &sent.external_id {
            next.external_id.clone_from(external_id);
        }
        next.subscription = sent.subscription.unwrap_or(self.subscription);
        let currency = sent.currency.unwrap_or(self.amount.currency());
        // Without an amount the number stays as it is written, whatever the currency makes of it.
        let exact = |decimal: &Decimal, field| {
            Money::exact(decimal, currency).map_err(|invalid| fields((field, invalid)))
        };
        next.amount = match &sent.amount {
            Some(amount) => exact(amount, "amount")?,
            None => exact(&self.amount.decimal(), "amount")?,
        };
        let frozen = self.frozen(&next);
        if self.status.is_settled() && !frozen.is_empty() {
            return Err(PaymentRefused::Settled(frozen));
        }
        if let Some(to) = sent.status.filter(|to| *to != self.status) {
            let from = self.status;
            if !from.may_become().contains(&to) {
                return Err(PaymentRefused::Transition { from, to });
            }
            next.status = to;
        }
        let said = match &sent.refunded {
            Some(Some(decimal)) => Some(exact(decimal, "refunded_amount")?),
            Some(None) | None => None,
        };
        let said = said.filter(|said| self.refunded != Some(*said));
        let unsaid = sent.refunded == Some(None) && self.refunded.is_some();
        let before = Before {
            status: self.status,
            refunded: self.refunded.filter(|_| !unsaid),
        };
        if unsaid && next.status != PaymentStatus::PartiallyRefunded {
            return Err(fields(says_itself(next.status)));
        }
        next.refunded = refund(next.status, next.amount, said, Some(&before)).map_err(fields)?;
        let changed = next != *self;
        next.updated_at = now;
        Ok(changed.then_some(next))
    }

    /// The fields in which it differs from another that are frozen once money has come.
    fn frozen(&self, other: &Self) -> Vec<&'static str> {
        let differs = [
            (
                "amount",
                self.amount.minor_units() != other.amount.minor_units(),
            ),
            (
                "currency",
                self.amount.currency() != other.amount.currency(),
            ),
            ("subscription_id", self.subscription != other.subscription),
        ];
        let differing = differs.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(field, _)| field).collect()
    }
}

/// Where a payment stood, and how much of it had been given back.
struct Before {
    status: PaymentStatus,
    refunded: Option<Money>,
}

/// How much was given back: as the status says, or, of a part, as somebody says now or said before.
fn refund(
    status: PaymentStatus,
    amount: Money,
    said: Option<Money>,
    before: Option<&Before>,
) -> Result<Option<Money>, Wrong> {
    let part = |money: &Money| (1..amount.minor_units()).contains(&money.minor_units());
    let none = Money::of_minor_units(0, amount.currency());
    let follows = match status {
        PaymentStatus::PartiallyRefunded => {
            let given = before.and_then(|before| before.refunded).filter(part);
            return match said {
                Some(said) if !part(&said) => {
                    let message = format!("a part is more than 0 and less than {amount}");
                    let invalid = Invalid::new(Rule::OutOfRange, message);
                    Err(("refunded_amount", invalid))
                }
                said => Ok(said.or(given)),
            };
        }
        PaymentStatus::Refunded => Some(amount),
        PaymentStatus::Completed | PaymentStatus::Disputed => match before {
            // What was given back before or during a dispute was given back, whatever comes of it.
            Some(before) if before.status.may_have_given_back() => before.refunded,
            _ => none,
        },
        PaymentStatus::Pending | PaymentStatus::Failed | PaymentStatus::Void => none,
    };
    match said {
        Some(said) if follows != Some(said) => Err(says_itself(status)),
        _ => Ok(follows),
    }
}

/// The status says how much was given back, and not somebody.
fn says_itself(status: PaymentStatus) -> Wrong {
    let message = format!("{status} says how much was given back; leave this out");
    let invalid = Invalid::new(Rule::InconsistentStatus, message);
    ("refunded_amount", invalid)
}

#[cfg(test)]
mod tests;
