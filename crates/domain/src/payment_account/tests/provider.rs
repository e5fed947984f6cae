//! A model of a payment provider: one subscription and its invoices, which change step by step.

use jiff::{SignedDuration, Timestamp};

use super::steps::Step;
use crate::{
    BillingCycle, DisputeState, ExternalId, Money, PaymentFact, PaymentStatus, PlanReference,
    Quantity, ReportedFact, ReportedPrice, SubscriptionFact, SubscriptionStatus,
};

/// An object: the subscription, or the invoice with this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    Subscription,
    Invoice(usize),
}

/// A paid invoice as the payment provider knows it.
#[derive(Debug, Clone)]
pub(super) struct Invoice {
    pub(super) fact: PaymentFact,
    dispute: Option<DisputeState>,
    version: Timestamp,
}

#[derive(Debug, Clone)]
pub(super) struct Provider {
    pub(super) now: Timestamp,
    /// Whether prices are reported, as by Stripe.
    reports_prices: bool,
    /// Whether objects have a version.
    has_versions: bool,
    pub(super) subscription: Option<(SubscriptionFact, Timestamp)>,
    pub(super) invoices: Vec<Invoice>,
}

pub(super) const DAY: SignedDuration = SignedDuration::from_hours(24);
const MONTH: SignedDuration = SignedDuration::from_hours(24 * 30);

pub(super) fn usd(minor: i64) -> Money {
    Money::from_minor_units(minor, "USD".parse().unwrap()).unwrap()
}

impl Provider {
    pub(super) fn new(reports_prices: bool, has_versions: bool) -> Self {
        Self {
            now: Timestamp::from_second(1_800_000_000).unwrap(),
            reports_prices,
            has_versions,
            subscription: None,
            invoices: Vec::new(),
        }
    }

    /// Returns the object as the API shows it, or `None` before it exists.
    pub(super) fn subscription(&self) -> Option<ReportedFact<SubscriptionFact>> {
        let (fact, version) = self.subscription.clone()?;
        let version = Some(version).filter(|_| self.has_versions);
        Some(ReportedFact { fact, version })
    }

    pub(super) fn invoice(&self, index: usize) -> ReportedFact<PaymentFact> {
        let invoice = &self.invoices[index];
        let version = Some(invoice.version).filter(|_| self.has_versions);
        let fact = invoice.fact.clone();
        ReportedFact { fact, version }
    }

    pub(super) fn objects(&self) -> Vec<Object> {
        let invoices = (0..self.invoices.len()).map(Object::Invoice);
        let subscription = self.subscription.iter().map(|_| Object::Subscription);
        subscription.chain(invoices).collect()
    }

    pub(super) fn last_invoice(&self, accepts: impl Fn(&PaymentFact) -> bool) -> Option<usize> {
        self.invoices
            .iter()
            .rposition(|invoice| accepts(&invoice.fact))
    }

    /// Takes a step, and returns the objects that changed.
    pub(super) fn take(&mut self, step: Step) -> Vec<Object> {
        match step {
            Step::RefundPart
            | Step::RefundAll
            | Step::Dispute
            | Step::WinDispute
            | Step::LoseDispute => vec![self.change_paid_invoice(step)],
            _ => {
                let mut changed: Vec<Object> = self.change_subscription(step).into_iter().collect();
                self.subscription.as_mut().unwrap().1 = self.now;
                changed.push(Object::Subscription);
                changed
            }
        }
    }

    fn change_paid_invoice(&mut self, step: Step) -> Object {
        let index = self.last_invoice(|fact| fact.status.is_settled()).unwrap();
        self.set_invoice(index, |invoice| {
            let amount = invoice.fact.amount.minor_units();
            match step {
                Step::RefundAll => invoice.fact.refunded_minor = Some(amount),
                Step::RefundPart => invoice.fact.refunded_minor = Some(amount / 3),
                Step::WinDispute => invoice.dispute = Some(DisputeState::Won),
                Step::LoseDispute => invoice.dispute = Some(DisputeState::Lost),
                _ => invoice.dispute = Some(DisputeState::Open),
            }
        })
    }

    /// Changes the subscription. Returns the invoices that changed with it.
    fn change_subscription(&mut self, step: Step) -> Vec<Object> {
        let now = self.now;
        match step {
            Step::StartPending => self.start(SubscriptionStatus::Pending),
            Step::StartTrial => {
                self.start(SubscriptionStatus::OnTrial);
                return vec![self.add_invoice(PaymentStatus::Completed, 0)];
            }
            Step::StartActive => {
                self.start(SubscriptionStatus::Active);
                return vec![self.add_invoice(PaymentStatus::Completed, 1)];
            }
            Step::Renew => {
                self.renew(SubscriptionStatus::Active);
                let pending = self.pay_last(PaymentStatus::Pending);
                let next = self.add_invoice(PaymentStatus::Completed, 1);
                return pending.into_iter().chain([next]).collect();
            }
            Step::FailRenewal => {
                self.renew(SubscriptionStatus::PastDue).late_since = Some(now);
                return vec![self.add_invoice(PaymentStatus::Failed, 1)];
            }
            Step::Recover => {
                self.set_status(SubscriptionStatus::Active).late_since = None;
                return self.pay_last(PaymentStatus::Failed).into_iter().collect();
            }
            Step::GiveUp => {
                self.set_status(SubscriptionStatus::Unpaid);
                let failed = self.last_invoice(|fact| fact.status == PaymentStatus::Failed);
                let give_up = |invoice: &mut Invoice| invoice.fact.status = PaymentStatus::Void;
                return failed
                    .map(|index| self.set_invoice(index, give_up))
                    .into_iter()
                    .collect();
            }
            Step::Upgrade => {
                self.upgrade();
                return vec![self.add_invoice(PaymentStatus::Pending, 2)];
            }
            Step::Pause => {
                self.set_status(SubscriptionStatus::Paused);
            }
            Step::Resume => {
                self.set_status(SubscriptionStatus::Active);
            }
            Step::Cancel => {
                let fact = self.set_status(SubscriptionStatus::Cancelled);
                fact.ends_at = fact.renews_at;
            }
            Step::UndoCancel => self.set_status(SubscriptionStatus::Active).ends_at = None,
            Step::End => {
                let fact = self.set_status(SubscriptionStatus::Expired);
                fact.late_since = None;
                fact.ends_at = Some(fact.ends_at.map_or(now, |end| end.min(now)));
            }
            _ => {}
        }
        Vec::new()
    }

    fn set_status(&mut self, status: SubscriptionStatus) -> &mut SubscriptionFact {
        let (fact, _) = self.subscription.as_mut().unwrap();
        fact.status = status;
        fact
    }

    fn upgrade(&mut self) {
        let (fact, _) = self.subscription.as_mut().unwrap();
        let is_basic = fact.plan.variant.as_str() == "basic";
        let (variant, quantity, minor) = if is_basic {
            ("pro", 3, 2_900)
        } else {
            ("basic", 1, 900)
        };
        fact.plan = reference(variant);
        fact.quantity = Quantity::try_from(quantity).unwrap();
        fact.price = self.reports_prices.then(|| price(minor));
    }

    fn start(&mut self, status: SubscriptionStatus) {
        let now = self.now;
        let trial_ends_at = (status == SubscriptionStatus::OnTrial)
            .then(|| now + SignedDuration::from_hours(24 * 7));
        let fact = SubscriptionFact {
            external_id: "sub_1".parse().unwrap(),
            plan: reference("basic"),
            quantity: Quantity::default(),
            price: self.reports_prices.then(|| price(900)),
            status,
            starts_at: now,
            renews_at: trial_ends_at.or(Some(now + MONTH)),
            ends_at: None,
            trial_ends_at,
            late_since: None,
        };
        self.subscription = Some((fact, now));
    }

    fn renew(&mut self, status: SubscriptionStatus) -> &mut SubscriptionFact {
        let now = self.now;
        let fact = self.set_status(status);
        fact.renews_at = Some(fact.renews_at.unwrap().max(now) + MONTH);
        fact
    }

    /// Adds an invoice over `units` × 9.00.
    fn add_invoice(&mut self, status: PaymentStatus, units: i64) -> Object {
        let index = self.invoices.len();
        let now = self.now;
        let (subscription, _) = self.subscription.as_ref().unwrap();
        let is_paid = status == PaymentStatus::Completed;
        let declined = || "card declined".parse().unwrap();
        self.invoices.push(Invoice {
            fact: PaymentFact {
                external_id: format!("in_{index}").parse().unwrap(),
                subscription: subscription.external_id.clone(),
                status,
                amount: usd(units * 900),
                refunded_minor: Some(0),
                paid_at: is_paid.then_some(now),
                failure_reason: (status == PaymentStatus::Failed).then(declined),
                period: Some((now, subscription.renews_at)),
            },
            dispute: None,
            version: now,
        });
        Object::Invoice(index)
    }

    /// Pays the last invoice with this status.
    fn pay_last(&mut self, status: PaymentStatus) -> Option<Object> {
        let now = self.now;
        let index = self.last_invoice(|fact| fact.status == status)?;
        Some(self.set_invoice(index, |invoice| {
            invoice.fact.status = PaymentStatus::Completed;
            invoice.fact.paid_at = Some(now);
            invoice.fact.failure_reason = None;
        }))
    }

    fn set_invoice(&mut self, index: usize, change: impl FnOnce(&mut Invoice)) -> Object {
        let invoice = &mut self.invoices[index];
        change(invoice);
        invoice.version = self.now;
        let fact = &mut invoice.fact;
        if fact.status.is_settled() {
            let refunded = fact.refunded_minor.unwrap();
            fact.status = PaymentFact::paid_status(fact.amount, refunded, invoice.dispute);
        }
        Object::Invoice(index)
    }
}

fn reference(variant: &str) -> PlanReference {
    let product: ExternalId = "product".parse().unwrap();
    PlanReference {
        variant: variant.parse().unwrap(),
        product: Some(product),
    }
}

fn price(minor: i64) -> ReportedPrice {
    ReportedPrice {
        amount: usd(minor),
        billing_cycle: BillingCycle::Monthly,
    }
}
