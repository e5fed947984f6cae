//! A preview shows what the change then does, and what to pay before it.

use super::*;
use crate::subscription::{
    billing::laws::random_request,
    random::{SplitMix64, cases},
};

/// Returns the entries without the payment, whose identifier a preview does not know.
fn without_payments(entries: &[LedgerEntry]) -> Vec<LedgerEntry> {
    let unnamed = |entry: &LedgerEntry| LedgerEntry {
        payment: None,
        ..entry.clone()
    };
    entries.iter().map(unnamed).collect()
}

#[test]
fn preview_equals_the_change_and_its_amount_due_suffices_while_it_is_valid() {
    let (mut done, mut short, mut rejected) = (0, 0, 0);
    let count = cases("PERENNIAL_LAWS", 2_000);
    // Some subscriptions cannot be created.
    for seed in 0..count + count / 4 {
        let Some(request) = random_request(seed) else {
            continue;
        };
        let (mut book, changes, now) = (request.book, request.changes, request.now);
        book.clear();
        let preview = match book.sub.preview(&changes, now) {
            Ok(preview) => preview,
            Err(error) => {
                assert_eq!(book.update(&changes, now), Err(error), "seed {seed}");
                rejected += 1;
                continue;
            }
        };
        let amount_due = preview.amount_due;
        if amount_due > 0 {
            let valid_until = preview.valid_until;
            let error = SubscriptionUpdateError::PaymentRequired {
                amount_due,
                valid_until,
            };
            assert_eq!(book.update(&changes, now), Err(error), "seed {seed}");
            book.pay(amount_due, now);
            change_until(seed, &book, &changes, (now, valid_until.unwrap()));
            short += 1;
        } else {
            done += 1;
        }
        book.update(&changes, now).unwrap();
        assert_eq!(book.sub, preview.after, "seed {seed}");
        assert_eq!(
            without_payments(&book.entries),
            without_payments(&preview.entries),
            "seed {seed}"
        );
    }
    println!("{done} funded, {short} to pay first, {rejected} rejected");
    assert!(done + short + rejected >= count);
}

/// Sends the change at random times while the quote is valid.
fn change_until(
    seed: u64,
    paid: &Book,
    changes: &SubscriptionChanges,
    (now, valid_until): (Timestamp, Timestamp),
) {
    let rng = &mut SplitMix64(seed);
    assert!(valid_until > now && valid_until <= now + SignedDuration::from_hours(1));
    let (first, last) = (now.as_microsecond(), valid_until.as_microsecond() - 1);
    for at in [
        first,
        last,
        rng.between(first, last),
        rng.between(first, last),
    ] {
        let at = Timestamp::from_microsecond(at).unwrap();
        let result = paid.clone().update(changes, at);
        assert!(
            result.is_ok(),
            "seed {seed}, paid at {now}, changed at {at}: {result:?}"
        );
    }
}
