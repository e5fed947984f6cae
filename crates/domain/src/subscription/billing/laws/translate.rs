//! The auditor's view of the domain's types.

use jiff::Timestamp;
use perennial_auditor as audit;

use super::super::{EntryType, LedgerEntry};
use crate::{
    BillingCycle, Id, Offer, Quantity, Subscription, SubscriptionChanges, SubscriptionStatus,
};

pub(super) fn micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_microsecond)
}

pub(super) fn status(status: SubscriptionStatus) -> audit::Status {
    match status {
        SubscriptionStatus::Pending => audit::Status::Pending,
        SubscriptionStatus::OnTrial => audit::Status::OnTrial,
        SubscriptionStatus::Active => audit::Status::Active,
        SubscriptionStatus::Paused => audit::Status::Paused,
        SubscriptionStatus::PastDue => audit::Status::PastDue,
        SubscriptionStatus::Unpaid => audit::Status::Unpaid,
        SubscriptionStatus::Cancelled => audit::Status::Cancelled,
        SubscriptionStatus::Expired => audit::Status::Expired,
    }
}

pub(super) fn cycle(cycle: BillingCycle) -> audit::Cycle {
    match cycle {
        BillingCycle::Daily => audit::Cycle::Daily,
        BillingCycle::Weekly => audit::Cycle::Weekly,
        BillingCycle::Monthly => audit::Cycle::Monthly,
        BillingCycle::Quarterly => audit::Cycle::Quarterly,
        BillingCycle::Semiannual => audit::Cycle::Semiannual,
        BillingCycle::Yearly => audit::Cycle::Yearly,
        BillingCycle::Lifetime => audit::Cycle::Lifetime,
    }
}

pub(super) fn quantity(quantity: Quantity) -> u32 {
    u32::try_from(quantity.get()).unwrap()
}

pub(super) fn terms(sub: &Subscription) -> audit::Terms {
    audit::Terms {
        plan: sub.plan.id.uuid().as_u128(),
        quantity: quantity(sub.quantity),
        price: sub.price().unwrap().minor_units(),
        cycle: cycle(sub.billing_cycle),
    }
}

pub(super) fn entry(entry: &LedgerEntry) -> audit::Entry {
    audit::Entry {
        at: entry.at.as_microsecond(),
        kind: match entry.entry_type {
            EntryType::Payment => audit::EntryKind::Payment,
            EntryType::Refund => audit::EntryKind::Refund,
            EntryType::Period => audit::EntryKind::Period,
            EntryType::Change => audit::EntryKind::Change,
            EntryType::Waiver => audit::EntryKind::Waiver,
            EntryType::Extension => audit::EntryKind::Extension,
        },
        amount: entry.amount,
        credit_after: entry.credit_after,
        payment: entry.payment.map(|id| id.uuid().as_u128()),
        period: entry
            .period
            .map(|(start, end)| (start.as_microsecond(), micros(end))),
        plan: entry.plan.uuid().as_u128(),
        quantity: quantity(entry.quantity),
    }
}

pub(super) fn probe(sub: &Subscription, at: Timestamp) -> audit::Probe {
    audit::Probe {
        at: at.as_microsecond(),
        access: sub.has_access(at),
        status: status(sub.status_at(at)),
        suspended: sub.suspended,
        credit: sub.credit,
        starts_at: sub.starts_at.as_microsecond(),
        renews_at: micros(sub.renews_at),
        ends_at: micros(sub.ends_at),
        terms: terms(sub),
    }
}

/// Returns the request that restores the terms of a subscription.
pub(super) fn to_terms(sub: &Subscription) -> SubscriptionChanges {
    SubscriptionChanges {
        offer: Some(Offer {
            plan: sub.plan.id,
            slug: sub.plan.slug,
            price: sub.plan.price,
            billing_cycle: sub.plan.billing_cycle,
            trial_days: 0,
            is_active: true,
        }),
        had_trial: true,
        billing_cycle: Some(sub.billing_cycle),
        price: sub.price().map(|price| Some(price.to_decimal())),
        quantity: Some(sub.quantity),
        ..SubscriptionChanges::default()
    }
}
