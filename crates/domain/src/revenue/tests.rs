use jiff::civil::Date;
use uuid::Uuid;

use super::*;
use crate::{Id, NewPayment, Payment, PaymentChanges, PaymentId, PaymentStatus};

fn at(text: &str) -> Timestamp {
    let text = if text.contains('T') {
        format!("{text}:00Z")
    } else {
        format!("{text}T12:00:00Z")
    };
    text.parse().unwrap()
}

fn date(text: &str) -> Date {
    text.parse().unwrap()
}

fn plan(number: u128) -> PlanId {
    PlanId::new(Uuid::from_u128(number))
}

fn usd() -> Currency {
    "USD".parse().unwrap()
}

/// A monthly subscription of plan 1 for 10.00 USD, created and started on 2026-01-15.
fn facts() -> RevenueFacts {
    RevenueFacts {
        subscription: SubscriptionId::new(Uuid::from_u128(1)),
        user: UserId::new(Uuid::from_u128(1)),
        plan: plan(1),
        billing_cycle: BillingCycle::Monthly,
        currency: usd(),
        price: Some(1_000),
        quantity: 1,
        status: SubscriptionStatus::Active,
        suspended: false,
        starts_at: at("2026-01-15"),
        ends_at: None,
        trial_ends_at: None,
        created_at: at("2026-01-15"),
    }
}

/// The journal of a user, written as the service writes it.
#[derive(Default)]
struct Journal {
    states: Vec<RecordedState>,
    last: Vec<RevenueFacts>,
}

impl Journal {
    fn push(&mut self, changes: Vec<RevenueChange>) {
        for change in changes {
            let sequence = i64::try_from(self.states.len()).unwrap();
            self.states.push(RecordedState {
                at: change.at,
                sequence,
                subscription: change.subscription,
                state: change.state,
                imported: change.imported,
            });
        }
    }

    fn set(&mut self, day: &str, facts: RevenueFacts) -> &mut Self {
        let index = (self.last.iter()).position(|last| last.subscription == facts.subscription);
        let before = index.map(|index| self.last.remove(index));
        self.push(facts.changes(before.as_ref(), at(day)));
        self.last.push(facts);
        self
    }

    fn delete(&mut self, day: &str, facts: RevenueFacts) -> &mut Self {
        self.push(vec![facts.deletion(at(day))]);
        self
    }

    /// Returns the movements of all plans together: day, kind, users, annual value.
    fn movements(&self) -> Vec<(String, &'static str, i64, i128)> {
        self.movements_of(None)
    }

    fn movements_of(&self, segment: Option<Segment>) -> Vec<(String, &'static str, i64, i128)> {
        let contribution = Contribution::of_user(&self.states);
        let movements = contribution.movements.iter();
        movements
            .filter(|(key, _)| key.segment == segment)
            .map(|(key, sums)| {
                let kind = key.kind.as_str();
                (key.day.to_string(), kind, sums.users, sums.annual_value)
            })
            .collect()
    }
}

fn movement(
    day: &str,
    kind: &'static str,
    users: i64,
    value: i128,
) -> (String, &'static str, i64, i128) {
    (day.to_owned(), kind, users, value)
}

#[test]
fn year_has_whole_cycles() {
    let per_year = BillingCycle::ALL.map(BillingCycle::per_year);
    let expected = [
        Some(365),
        Some(52),
        Some(12),
        Some(4),
        Some(2),
        Some(1),
        None,
    ];
    assert_eq!(per_year, expected);
}

#[test]
fn basis_and_status_decide_what_counts() {
    let counted = |change: fn(&mut RevenueFacts)| {
        let mut facts = facts();
        change(&mut facts);
        facts.started_state().counted_value()
    };
    assert_eq!(counted(|_| ()), 12_000);
    assert_eq!(counted(|facts| facts.quantity = 3), 36_000);
    assert_eq!(
        counted(|facts| facts.billing_cycle = BillingCycle::Yearly),
        1_000
    );
    assert_eq!(counted(|facts| facts.suspended = true), 12_000);
    assert_eq!(
        counted(|facts| facts.billing_cycle = BillingCycle::Lifetime),
        0
    );
    assert_eq!(counted(|facts| facts.price = None), 0);
    assert_eq!(counted(|facts| facts.price = Some(0)), 0);
    for status in SubscriptionStatus::ALL {
        let state = RevenueFacts { status, ..facts() }.started_state();
        let expected = match status {
            SubscriptionStatus::Active
            | SubscriptionStatus::PastDue
            | SubscriptionStatus::Cancelled => 12_000,
            _ => 0,
        };
        assert_eq!(state.counted_value(), expected, "{status}");
    }
}

#[test]
fn largest_subscription_is_exact() {
    let largest = RevenueFacts {
        price: Some(crate::MAX_MINOR_UNITS),
        quantity: 100_000,
        billing_cycle: BillingCycle::Daily,
        ..facts()
    };
    let expected = 36_500_000_000_000_000_000;
    assert_eq!(largest.started_state().annual_value, expected);
}

#[test]
fn trial_that_is_cancelled_never_counts() {
    let cancelled = RevenueFacts {
        status: SubscriptionStatus::Cancelled,
        trial_ends_at: Some(at("2026-01-29")),
        ends_at: Some(at("2026-01-29")),
        ..facts()
    };
    assert_eq!(cancelled.started_state().basis, RevenueBasis::Trial);
    let later = RevenueFacts {
        ends_at: Some(at("2026-03-01")),
        ..cancelled
    };
    assert_eq!(later.started_state().basis, RevenueBasis::Recurring);
}

#[test]
fn renewal_writes_nothing_and_a_future_start_two_states() {
    let active = facts();
    assert_eq!(active.changes(Some(&active), at("2026-02-15")), []);
    let future = RevenueFacts {
        starts_at: at("2026-03-01"),
        ..facts()
    };
    let changes = future.changes(None, at("2026-01-15"));
    let states: Vec<_> = (changes.iter())
        .map(|change| (change.at, change.state.status.as_str()))
        .collect();
    assert_eq!(
        states,
        [
            (at("2026-01-15"), "scheduled"),
            (at("2026-03-01"), "active")
        ]
    );
}

#[test]
fn movements_of_one_user_over_a_year() {
    let mut journal = Journal::default();
    let quantity = |quantity| RevenueFacts {
        quantity,
        ..facts()
    };
    let unpaid = RevenueFacts {
        status: SubscriptionStatus::Unpaid,
        ..quantity(2)
    };
    journal
        .set("2026-01-15", facts())
        .set("2026-02-01", quantity(3))
        .set("2026-03-01", quantity(2))
        .set("2026-04-01", unpaid)
        .set("2026-05-01", quantity(2));
    assert_eq!(
        journal.movements(),
        [
            movement("2026-01-15", "new", 1, 12_000),
            movement("2026-02-01", "expansion", 0, 24_000),
            movement("2026-03-01", "contraction", 0, -12_000),
            movement("2026-04-01", "churned", -1, -24_000),
            movement("2026-05-01", "reactivated", 1, 24_000),
        ]
    );
}

#[test]
fn changes_of_one_day_are_netted() {
    let mut journal = Journal::default();
    let expired = RevenueFacts {
        status: SubscriptionStatus::Expired,
        ..facts()
    };
    journal
        .set("2026-01-15T08:00", facts())
        .set("2026-01-15T09:00", expired);
    assert_eq!(journal.movements(), []);
}

#[test]
fn move_to_another_plan_is_a_transfer_and_the_difference_an_expansion() {
    let mut journal = Journal::default();
    let larger = RevenueFacts {
        plan: plan(2),
        price: Some(3_000),
        ..facts()
    };
    journal.set("2026-01-15", facts()).set("2026-02-01", larger);
    assert_eq!(
        journal.movements()[1..],
        [movement("2026-02-01", "expansion", 0, 24_000)]
    );
    assert_eq!(
        journal.movements_of(Some((plan(1), BillingCycle::Monthly))),
        [
            movement("2026-01-15", "new", 1, 12_000),
            movement("2026-02-01", "transferred", -1, -12_000),
        ]
    );
    assert_eq!(
        journal.movements_of(Some((plan(2), BillingCycle::Monthly))),
        [
            movement("2026-02-01", "expansion", 0, 24_000),
            movement("2026-02-01", "transferred", 1, 12_000),
        ]
    );
}

#[test]
fn import_and_deletion_are_no_sale_and_no_churn() {
    let mut journal = Journal::default();
    let imported = RevenueFacts {
        starts_at: at("2025-01-01"),
        ..facts()
    };
    journal
        .set("2026-01-15", imported)
        .delete("2026-02-01", imported);
    assert_eq!(
        journal.movements(),
        [
            movement("2026-01-15", "imported", 1, 12_000),
            movement("2026-02-01", "correction", -1, -12_000),
        ]
    );
}

#[test]
fn mistake_that_is_deleted_on_the_same_day_leaves_nothing() {
    let mut journal = Journal::default();
    journal
        .set("2026-01-15T08:00", facts())
        .delete("2026-01-15T09:00", facts());
    assert_eq!(journal.movements(), []);
}

#[test]
fn start_that_moves_replaces_the_scheduled_one() {
    let mut journal = Journal::default();
    let starting = |day| RevenueFacts {
        starts_at: at(day),
        ..facts()
    };
    journal
        .set("2026-01-15", starting("2026-02-01"))
        .set("2026-01-20", starting("2026-03-01"))
        .set("2026-01-25", starting("2026-02-15"));
    assert_eq!(
        journal.movements(),
        [movement("2026-02-15", "new", 1, 12_000)]
    );
}

#[test]
fn late_state_corrects_its_own_day() {
    let mut journal = Journal::default();
    let unpaid = RevenueFacts {
        status: SubscriptionStatus::Unpaid,
        ..facts()
    };
    journal
        .set("2026-01-15", facts())
        .set("2026-03-01", unpaid)
        .set("2026-04-01", facts());
    let in_order = Contribution::of_user(&journal.states);
    // The journal grows in the order of writing; the roll-up may see any part of it first.
    for rolled in 0..journal.states.len() {
        let mut sums = Contribution::of_user(&journal.states[..rolled]);
        let mut difference = Contribution::of_user(&journal.states);
        difference.subtract(&Contribution::of_user(&journal.states[..rolled]));
        sums.add(&difference);
        assert_eq!(sums, in_order);
    }
}

#[test]
fn currencies_are_never_added() {
    let mut journal = Journal::default();
    let euro = RevenueFacts {
        currency: "EUR".parse().unwrap(),
        ..facts()
    };
    journal.set("2026-01-15", facts()).set("2026-02-01", euro);
    assert_eq!(
        journal.movements(),
        [
            movement("2026-01-15", "new", 1, 12_000),
            movement("2026-02-01", "new", 1, 12_000),
            movement("2026-02-01", "churned", -1, -12_000),
        ]
    );
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
    let shown = |totals: Vec<PaymentTotal>| -> Vec<(String, &'static str, i64, i64)> {
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
