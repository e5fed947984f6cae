//! Tests of revenue: the journal of one user and its movements.

use uuid::Uuid;

use super::*;
use crate::Id;

mod outcomes;
mod states;

fn at(text: &str) -> Timestamp {
    let text = if text.contains('T') {
        format!("{text}:00Z")
    } else {
        format!("{text}T12:00:00Z")
    };
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
