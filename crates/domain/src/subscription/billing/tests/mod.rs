//! The rules of managed billing, one by one, with exact figures.
//!
//! The usual plan costs 31.00 a month. It is bought on January 1, so that January costs 1.00 a day
//! and the periods start on days 0, 31, 59, 90 and 120.

use jiff::SignedDuration;

use super::{fixtures::*, *};
use crate::{BillingCycle, NewSubscription, Offer, SubscriptionChanges, SubscriptionUpdateError};

mod creation;
mod dates;
mod edges;
mod exploits;
mod free_time;
mod managed;
mod payments;
mod periods;
mod preview;
mod status;
mod terms;
mod worked_prices;

use SubscriptionStatus::{Active, Cancelled, Expired, OnTrial, PastDue, Paused, Pending, Unpaid};

const PRICE: i64 = 3_100;

fn with_trial(offer: Offer) -> Offer {
    Offer {
        trial_days: 14,
        ..offer
    }
}

fn weekly(price: i64) -> Offer {
    plan(4, price, BillingCycle::Weekly)
}

fn yearly(price: i64) -> Offer {
    plan(5, price, BillingCycle::Yearly)
}

fn lifetime(price: i64) -> Offer {
    plan(6, price, BillingCycle::Lifetime)
}

fn just_before(at: Timestamp) -> Timestamp {
    at - TICK
}

/// Returns start and end of the last entry's period.
fn last_period(book: &Book) -> (Timestamp, Option<Timestamp>) {
    book.entries.last().unwrap().period.unwrap()
}

/// Returns the fields of a rejected creation on day 0.
fn rejected_fields(new: &NewSubscription, offer: &Offer) -> Vec<&'static str> {
    let errors = Subscription::create(new, &context(offer, noon(0))).unwrap_err();
    errors.into_iter().map(|(field, _)| field).collect()
}

/// Returns the days in `days` on which the subscription gives access, at noon.
fn days_with_access(book: &Book, days: std::ops::Range<i64>) -> i64 {
    let mut book = book.clone();
    let has_access = |day: &i64| book.run(noon(*day)).has_access(noon(*day));
    i64::try_from(days.filter(has_access).count()).unwrap()
}
