//! The first status, the first period and trials.

use super::*;
use crate::Subscription;

fn with_status(status: SubscriptionStatus) -> NewSubscription {
    NewSubscription {
        status: Some(status),
        ..new()
    }
}

fn with_trial(trial_days: u16) -> Offer {
    Offer {
        trial_days,
        ..monthly(PRICE)
    }
}

fn rejected(new: &NewSubscription, offer: &Offer) -> Vec<&'static str> {
    let errors = Subscription::create(new, &context(offer, noon(0))).unwrap_err();
    errors.into_iter().map(|(field, _)| field).collect()
}

#[test]
fn default_status_depends_on_trial_and_amount() {
    assert_eq!(Book::pending(&monthly(PRICE)).sub.status, Pending);
    assert_eq!(Book::pending(&monthly(0)).sub.status, Active);
    let offer = with_trial(14);
    let trial = Book::pending(&offer);
    assert_eq!(
        (trial.sub.status, trial.sub.renews_at),
        (OnTrial, Some(noon(14)))
    );
    assert_eq!(trial.amounts(), "extension 0");
    assert_eq!(last_period(&trial), (noon(0), Some(noon(14))));
    let mut again = context(&offer, noon(0));
    again.had_trial = true;
    assert_eq!(Book::create(&new(), &again).sub.status, Pending);
}

#[test]
fn pending_subscription_starts_when_credit_suffices() {
    let mut book = Book::pending(&monthly(PRICE));
    assert_eq!(
        (book.sub.renews_at, book.sub.has_access(noon(0))),
        (None, false)
    );
    book.pay(1_000, noon(2));
    assert_eq!(book.sub.status, Pending);
    assert_eq!(book.payments[0].period, None, "it stayed credit");
    book.pay(2_100, noon(4));
    assert_eq!((book.sub.status, book.sub.starts_at), (Active, noon(4)));
    assert_eq!((book.sub.renews_at, book.sub.credit), (Some(noon(35)), 0));
    assert_eq!(book.payments[1].period, Some((noon(4), Some(noon(35)))));
}

#[test]
fn pending_subscription_starts_at_a_later_starts_at() {
    let later = NewSubscription {
        starts_at: Some(noon(10)),
        ..new()
    };
    let offer = monthly(PRICE);
    let mut book = Book::create(&later, &context(&offer, noon(0)));
    book.pay(PRICE, noon(2));
    assert_eq!((book.sub.status, book.sub.credit), (Pending, PRICE));
    book.run(noon(10));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (Active, Some(noon(41)))
    );
    assert_eq!(last_period(&book), (noon(10), Some(noon(41))));
    let mut unpaid = Book::create(&later, &context(&offer, noon(0)));
    assert_eq!(unpaid.run(just_before(noon(40))).status, Pending);
    assert_eq!(
        unpaid.run(noon(40)).status,
        Expired,
        "30 days after starts_at"
    );
}

#[test]
fn pending_subscription_expires_after_expired_after_days() {
    let mut book = Book::pending(&monthly(PRICE));
    book.pay(PRICE - 1, noon(29));
    assert_eq!(book.run(just_before(noon(30))).status, Pending);
    let expired = book.run(noon(30));
    assert_eq!(
        (expired.status, expired.ends_at, expired.credit),
        (Expired, Some(noon(30)), 3_099)
    );
}

#[test]
fn active_on_create_starts_an_open_period_with_grace() {
    let offer = monthly(PRICE);
    let mut book = Book::create(&with_status(Active), &context(&offer, noon(0)));
    assert_eq!(
        (book.sub.status, book.sub.late_since),
        (PastDue, Some(noon(0)))
    );
    assert_eq!(book.sub.renews_at, Some(noon(0)));
    assert!(book.entries.is_empty() && book.sub.has_access(noon(0)));
    assert_eq!(book.run(noon(7)).status, Unpaid);
    book.pay(PRICE, noon(8));
    assert_eq!(last_period(&book), (noon(0), Some(noon(31))));
}

#[test]
fn active_from_pending_or_trial_starts_the_period_at_once() {
    let mut pending = Book::pending(&monthly(PRICE));
    pending.status(Active, noon(3));
    assert_eq!(
        (pending.sub.status, pending.sub.starts_at),
        (PastDue, noon(3))
    );
    assert_eq!(
        (pending.sub.renews_at, pending.sub.late_since),
        (Some(noon(3)), Some(noon(3)))
    );
    let mut trial = Book::pending(&with_trial(14));
    trial.pay(PRICE, noon(1));
    assert_eq!((trial.sub.status, trial.sub.credit), (OnTrial, PRICE));
    trial.status(Active, noon(5));
    assert_eq!((trial.sub.status, trial.sub.credit), (Active, 0));
    assert_eq!(last_period(&trial), (noon(5), Some(noon(36))));
}

#[test]
fn active_on_create_with_a_future_start_is_charged_then() {
    let later = NewSubscription {
        starts_at: Some(noon(10)),
        ..with_status(Active)
    };
    let offer = monthly(PRICE);
    let mut book = Book::create(&later, &context(&offer, noon(0)));
    assert_eq!(
        (book.sub.status, book.sub.has_access(noon(9))),
        (Active, false)
    );
    let mut paid = book.clone();
    paid.pay(PRICE, noon(1));
    paid.run(noon(10));
    assert_eq!(
        (paid.sub.status, paid.sub.renews_at),
        (Active, Some(noon(41)))
    );
    book.run(noon(10));
    assert_eq!(
        (book.sub.status, book.sub.late_since),
        (PastDue, Some(noon(10)))
    );
}

#[test]
fn renews_at_on_create_ends_the_first_period_at_the_full_amount() {
    for (status, start) in [(None, noon(1)), (Some(Active), noon(0))] {
        let short = NewSubscription {
            status,
            renews_at: Some(noon(10)),
            ..new()
        };
        let offer = monthly(PRICE);
        let mut book = Book::create(&short, &context(&offer, noon(0)));
        book.pay(2 * PRICE, noon(1));
        assert_eq!(last_period(&book), (start, Some(noon(10))), "{status:?}");
        assert_eq!((book.sub.credit, book.sub.anchor), (PRICE, noon(10)));
        assert_eq!(book.run(noon(10)).renews_at, Some(noon(41)));
    }
}

#[test]
fn past_start_makes_the_current_period_due_and_nothing_earlier() {
    let past = NewSubscription {
        starts_at: Some(noon(-100)),
        ..with_status(Active)
    };
    let offer = monthly(PRICE);
    let mut book = Book::create(&past, &context(&offer, noon(0)));
    // September 23 is the anchor, so the current period is from December 23 to January 23.
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (PastDue, Some(noon(-9)))
    );
    assert_eq!(book.sub.late_since, Some(noon(0)), "late from its creation");
    let mut paid = book.clone();
    paid.pay(PRICE, noon(3));
    assert_eq!(last_period(&paid), (noon(-9), Some(noon(22))));
    assert_eq!(paid.run(noon(3)).status, Active);
    assert_eq!(book.run(noon(7)).status, Unpaid);
}

#[test]
fn starts_at_cannot_change_after_the_start() {
    let book = Book::paid(&monthly(PRICE));
    let moved = SubscriptionChanges {
        starts_at: Some(noon(5)),
        ..SubscriptionChanges::default()
    };
    assert_eq!(book.invalid(&moved, noon(1)), ["starts_at"]);
    let mut pending = Book::pending(&monthly(PRICE));
    pending.change(&moved, noon(1));
    pending.pay(PRICE, noon(2));
    assert_eq!(pending.sub.status, Pending);
    assert_eq!(pending.run(noon(5)).renews_at, Some(noon(36)));
}

#[test]
fn past_due_and_unpaid_cannot_be_stated() {
    let book = Book::paid(&monthly(PRICE));
    for to in [PastDue, Unpaid] {
        assert_eq!(rejected(&with_status(to), &monthly(PRICE)), ["status"]);
        assert_eq!(
            book.sub.update(&to_status(to), noon(5)),
            Err(SubscriptionUpdateError::TransitionNotAllowed { from: Active, to })
        );
    }
}

#[test]
fn on_trial_needs_trial_days_or_a_future_renewal() {
    assert_eq!(
        rejected(&with_status(OnTrial), &monthly(PRICE)),
        ["renews_at"]
    );
    let passed = NewSubscription {
        renews_at: Some(noon(-1)),
        ..with_status(OnTrial)
    };
    assert_eq!(rejected(&passed, &monthly(PRICE)), ["renews_at"]);
    let dated = NewSubscription {
        renews_at: Some(noon(10)),
        ..with_status(OnTrial)
    };
    let offer = monthly(PRICE);
    let mut book = Book::create(&dated, &context(&offer, noon(0)));
    assert_eq!(
        (book.sub.status, book.sub.renews_at),
        (OnTrial, Some(noon(10)))
    );
    assert_eq!(
        book.run(noon(10)).status,
        PastDue,
        "the first period is due at its end"
    );
}

#[test]
fn paused_or_cancelled_trial_returns_only_before_its_end() {
    for status in [Paused, Cancelled] {
        let mut book = Book::pending(&with_trial(14));
        book.status(status, noon(2));
        let mut back = book.clone();
        back.status(OnTrial, noon(13));
        assert_eq!(
            (back.sub.status, back.sub.renews_at),
            (OnTrial, Some(noon(14)))
        );
        assert_eq!(
            (back.sub.ends_at, back.amounts().as_str()),
            (None, "extension 0")
        );
        assert!(book.sub.update(&to_status(OnTrial), noon(14)).is_err());
    }
}
