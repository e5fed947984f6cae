//! Tests of cohorts, of trials and late payments, and of the sums of payments.

use jiff::civil::Date;

use super::*;
use crate::{NewPayment, Payment, PaymentChanges, PaymentId, PaymentStatus};

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

#[test]
fn cohort_is_the_month_of_the_first_paid_day() {
    let mut journal = Journal::default();
    let trial = RevenueFacts {
        status: SubscriptionStatus::OnTrial,
        ..facts()
    };
    let expired = RevenueFacts {
        status: SubscriptionStatus::Expired,
        ..facts()
    };
    journal
        .set("2026-01-15", trial)
        .set("2026-02-15", facts())
        .set("2026-04-15", expired);
    let contribution = Contribution::of_user(&journal.states);
    let cohorts: Vec<_> = (contribution.cohorts.iter())
        .map(|(key, sums)| {
            let sums = (sums.joined, sums.users, sums.annual_value);
            (key.cohort, key.month, sums)
        })
        .collect();
    let (february, april) = (date("2026-02-01"), date("2026-04-01"));
    assert_eq!(
        cohorts,
        [
            (february, february, (1, 1, 12_000)),
            (february, april, (0, -1, -12_000)),
        ]
    );
}

fn outcomes(journal: &Journal) -> Vec<(String, &'static str)> {
    let contribution = Contribution::of_user(&journal.states);
    let outcomes = contribution.outcomes.keys();
    outcomes
        .filter(|key| key.segment.is_none())
        .map(|key| (key.day.to_string(), key.kind.as_str()))
        .collect()
}

#[test]
fn trial_converts_when_it_is_paid_even_if_late() {
    let with_status = |status| RevenueFacts { status, ..facts() };
    let mut journal = Journal::default();
    journal
        .set("2026-01-15", with_status(SubscriptionStatus::OnTrial))
        .set("2026-01-29", with_status(SubscriptionStatus::PastDue))
        .set("2026-02-02", with_status(SubscriptionStatus::Active));
    assert_eq!(
        outcomes(&journal),
        [
            ("2026-01-15".to_owned(), "trial_started"),
            ("2026-01-29".to_owned(), "late_started"),
            ("2026-02-02".to_owned(), "trial_converted"),
            ("2026-02-02".to_owned(), "late_recovered"),
        ]
    );
    let mut journal = Journal::default();
    journal
        .set("2026-01-15", with_status(SubscriptionStatus::OnTrial))
        .set("2026-01-20", with_status(SubscriptionStatus::Cancelled))
        .set("2026-01-29", with_status(SubscriptionStatus::Expired));
    assert_eq!(
        outcomes(&journal),
        [
            ("2026-01-15".to_owned(), "trial_started"),
            ("2026-01-29".to_owned(), "trial_lost"),
        ]
    );
}

#[test]
fn payment_moves_between_the_sums_of_days() {
    let subscription = SubscriptionId::new(Uuid::from_u128(1));
    let amount = crate::Money::from_minor_units(1_000, usd()).unwrap();
    let new = NewPayment {
        status: Some(PaymentStatus::Failed),
        ..NewPayment::new(subscription, amount)
    };
    let id = PaymentId::new(Uuid::from_u128(1));
    let failed = Payment::create(new, id, at("2026-01-15")).unwrap();
    let changes = |status, refunded: Option<&str>| PaymentChanges {
        status: Some(status),
        refunded: refunded.map(|refunded| Some(refunded.parse().unwrap())),
        ..PaymentChanges::default()
    };
    let completed = failed.update(&changes(PaymentStatus::Completed, None), at("2026-01-20"));
    let completed = completed.unwrap().unwrap();
    let part = changes(PaymentStatus::PartiallyRefunded, Some("4.00"));
    let refunded = completed.update(&part, at("2026-02-01")).unwrap().unwrap();
    let shown = |totals: Vec<DayPayments>| -> Vec<(String, &'static str, i64, i64)> {
        (totals.iter())
            .map(|total| {
                let kind = total.kind.as_str();
                (total.day.to_string(), kind, total.payments, total.amount)
            })
            .collect()
    };
    assert_eq!(
        shown(completed.changed_totals(Some(&failed))),
        [
            ("2026-01-15".to_owned(), "failed", -1, -1_000),
            ("2026-01-20".to_owned(), "collected", 1, 1_000),
        ]
    );
    assert_eq!(
        shown(refunded.totals()),
        [
            ("2026-01-20".to_owned(), "collected", 1, 1_000),
            ("2026-01-20".to_owned(), "refunded", 1, 400),
        ]
    );
    assert_eq!(refunded.changed_totals(Some(&refunded)), []);
}
