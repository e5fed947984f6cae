//! The stored form of facts, and their order.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{history::History, steps::Step, world::Report};
use crate::{
    BillingCycle, Fact, Money, PaymentFact, PaymentStatus, PlanReference, Quantity, ReportedFact,
    ReportedPrice, Rule, SubscriptionFact, SubscriptionStatus, subscription::random::SplitMix64,
};

pub(super) fn sample_subscription() -> SubscriptionFact {
    let at = |days: i64| Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap();
    SubscriptionFact {
        external_id: "sub_1".parse().unwrap(),
        plan: PlanReference {
            variant: "basic".parse().unwrap(),
            product: Some("product".parse().unwrap()),
        },
        quantity: Quantity::default(),
        price: Some(ReportedPrice {
            amount: Money::from_minor_units(1_990, "KWD".parse().unwrap()).unwrap(),
            billing_cycle: BillingCycle::Yearly,
        }),
        status: SubscriptionStatus::PastDue,
        starts_at: at(0),
        renews_at: Some(at(30)),
        ends_at: Some(at(40)),
        trial_ends_at: Some(at(7)),
        late_since: Some(at(30) + SignedDuration::from_micros(1)),
    }
}

#[test]
fn stored_fact_names_the_field_that_is_wrong() {
    let fields = sample_subscription().to_fields();
    assert_eq!(
        SubscriptionFact::from_fields(&fields),
        Ok(sample_subscription())
    );
    assert_eq!(fields["price"], "1.990");
    for (name, value, rule) in [
        ("status", "activ", Rule::UnknownValue),
        ("quantity", "0", Rule::OutOfRange),
        ("quantity", "1.5", Rule::InvalidFormat),
        ("starts_at", "yesterday", Rule::InvalidFormat),
        ("price", "1.9999", Rule::AmountScaleInvalid),
    ] {
        let mut fields = fields.clone();
        fields.insert(name.to_owned(), value.to_owned());
        let (field, error) = SubscriptionFact::from_fields(&fields).unwrap_err();
        assert_eq!((field, error.rule), (name, rule));
    }
    for name in [
        "external_id",
        "variant",
        "quantity",
        "price",
        "status",
        "starts_at",
    ] {
        let mut fields = fields.clone();
        fields.remove(name);
        let (field, error) = SubscriptionFact::from_fields(&fields).unwrap_err();
        assert_eq!((field, error.rule), (name, Rule::Required));
    }
}

/// Returns all facts of a random history.
fn reports(seed: u64) -> Vec<Report> {
    let mut random = SplitMix64(seed);
    let history = History::random(&mut random, true, true);
    let mut provider = history.provider();
    let mut reports = Vec::new();
    for index in 0..history.steps.len() {
        for object in history.take(index, &mut provider) {
            reports.push(Report::read(&provider, object));
        }
    }
    reports
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn stored_fact_parses_to_the_same_fact(seed in any::<u64>()) {
        for report in reports(seed) {
            match report {
                Report::Subscription(ReportedFact { fact, .. }) => {
                    prop_assert_eq!(SubscriptionFact::from_fields(&fact.to_fields()), Ok(fact));
                }
                Report::Invoice(_, ReportedFact { fact, .. }) => {
                    prop_assert_eq!(PaymentFact::from_fields(&fact.to_fields()), Ok(fact));
                }
            }
        }
    }

    #[test]
    fn payloads_have_a_strict_total_order(seed in any::<u64>()) {
        let mut payloads = Vec::new();
        for report in reports(seed) {
            if let Report::Subscription(payload) = report {
                payloads.push(payload);
            }
        }
        for a in &payloads {
            prop_assert!(!a.is_newer_than(a));
            for b in &payloads {
                prop_assert!(a == b || a.is_newer_than(b) != b.is_newer_than(a));
                for c in &payloads {
                    let chain = a.is_newer_than(b) && b.is_newer_than(c);
                    prop_assert!(!chain || a.is_newer_than(c));
                }
            }
        }
    }
}

/// A later status has a higher rank, except that payments and subscriptions can recover.
#[test]
fn ranks_of_statuses_differ() {
    let mut subscription = sample_subscription();
    let mut ranks: Vec<u8> = Vec::new();
    for status in SubscriptionStatus::ALL {
        subscription.status = status;
        ranks.push(subscription.status_rank());
    }
    ranks.sort_unstable();
    ranks.dedup();
    assert_eq!(ranks.len(), SubscriptionStatus::ALL.len());

    let mut provider = History::daily(&[Step::StartActive]).provider();
    provider.take(Step::StartActive);
    let mut payment = provider.invoice(0).fact;
    let mut rank = |status| {
        payment.status = status;
        payment.status_rank()
    };
    for status in PaymentStatus::ALL {
        for later in status.allowed_transitions() {
            let can_return = matches!(
                (status, later),
                (PaymentStatus::Failed, PaymentStatus::Pending)
                    | (
                        PaymentStatus::Disputed
                            | PaymentStatus::PartiallyRefunded
                            | PaymentStatus::Refunded,
                        PaymentStatus::Completed
                    )
            );
            assert_eq!(rank(status) < rank(*later), !can_return, "{status} {later}");
        }
    }
}
