//! What users can change, by status and lifecycle.

use super::*;
use crate::{
    BillingCycle,
    subscription::tests::{day, subscription},
};

fn cancelled_by(
    server_changes: &SubscriptionChanges,
    before: &Subscription,
) -> (Subscription, Option<Cancellation>) {
    let applied = before.update(server_changes, day(5)).unwrap().unwrap();
    let cancellation = Cancellation::from_change(before, &applied.after, server_changes);
    (applied.after, cancellation)
}

fn cancel() -> SubscriptionChanges {
    SubscriptionChanges {
        status: Some(SubscriptionStatus::Cancelled),
        ..SubscriptionChanges::default()
    }
}

fn not_allowed(from: SubscriptionStatus, to: SubscriptionStatus) -> SelfServiceError {
    SelfServiceError::NotAllowed { from, to }
}

#[test]
fn user_can_cancel_and_nothing_else_by_status() {
    for from in SubscriptionStatus::ALL {
        let sub = subscription(from);
        for to in SubscriptionStatus::ALL {
            let result = sub.update_by_user(Some(to), None, false, day(5));
            let changed = result.as_ref().is_ok_and(Option::is_some);
            let allowed = from.allowed_to_users().contains(&to);
            if to == from {
                assert_eq!(result, Ok(None), "{from}");
            } else if to == SubscriptionStatus::Active && allowed {
                assert_eq!(result, Err(SelfServiceError::CannotUndo), "{from}");
            } else if allowed {
                assert!(changed, "{from} to {to}: {result:?}");
            } else {
                assert_eq!(result, Err(not_allowed(from, to)));
            }
        }
    }
}

#[test]
fn undo_restores_status_and_end() {
    for status in [SubscriptionStatus::Active, SubscriptionStatus::OnTrial] {
        for ends_at in [None, Some(day(20)), Some(day(30)), Some(day(365))] {
            for suspended in [false, true] {
                let before = Subscription {
                    ends_at,
                    ..subscription(status)
                };
                let (mut canceled, cancellation) = cancelled_by(&cancel(), &before);
                let earlier = ends_at.map_or(day(30), |end| end.min(day(30)));
                assert_eq!(canceled.ends_at, Some(earlier));
                // Suspended after the cancellation: canceling a suspended subscription ends it at once.
                canceled.suspended = suspended;
                let undo = Some(SubscriptionStatus::Active);
                let undone = canceled.update_by_user(undo, cancellation.as_ref(), false, day(6));
                let undone = undone.unwrap().unwrap();
                assert_eq!(undone.entries().count(), 0);
                let expected = Subscription {
                    suspended,
                    updated_at: day(6),
                    ..before
                };
                assert_eq!(undone.after, expected);
                // Too late at its end.
                let late = canceled.update_by_user(undo, cancellation.as_ref(), false, earlier);
                let expired = SubscriptionStatus::Expired;
                let error = not_allowed(expired, SubscriptionStatus::Active);
                assert_eq!(late, Err(error));
            }
        }
    }
}

/// A pending or paused subscription that starts later is canceled until its start. Undone as active, it
/// would give access from then on.
#[test]
fn undo_is_limited_to_statuses_that_gave_access() {
    for status in [
        SubscriptionStatus::Pending,
        SubscriptionStatus::Paused,
        SubscriptionStatus::PastDue,
        SubscriptionStatus::Unpaid,
    ] {
        let before = Subscription {
            starts_at: day(10),
            ..subscription(status)
        };
        let (canceled, cancellation) = cancelled_by(&cancel(), &before);
        assert_eq!(canceled.status, SubscriptionStatus::Cancelled, "{status}");
        assert_eq!(cancellation.map(|last| last.status), Some(status));
        let undo = Some(SubscriptionStatus::Active);
        assert_eq!(
            canceled.update_by_user(undo, cancellation.as_ref(), false, day(6)),
            Err(SelfServiceError::CannotUndo),
            "{status}"
        );
    }
}

#[test]
fn end_set_by_a_server_stays() {
    let active = subscription(SubscriptionStatus::Active);
    let with_end = SubscriptionChanges {
        ends_at: Some(Some(day(12))),
        ..cancel()
    };
    let undo = Some(SubscriptionStatus::Active);
    let (_, cancellation) = cancelled_by(&with_end, &active);
    assert_eq!(cancellation, None);
    // Moved after the cancellation.
    let (canceled, cancellation) = cancelled_by(&cancel(), &active);
    let moved = SubscriptionChanges {
        ends_at: Some(Some(day(12))),
        ..SubscriptionChanges::default()
    };
    let moved = canceled.update(&moved, day(6)).unwrap().unwrap().after;
    assert_eq!(
        moved.update_by_user(undo, cancellation.as_ref(), false, day(7)),
        Err(SelfServiceError::CannotUndo)
    );
}

#[test]
fn providers_subscription_and_lifetime_are_refused() {
    let provider = Subscription {
        external_id: Some("sub_1".parse().unwrap()),
        ..subscription(SubscriptionStatus::Active)
    };
    let lifetime = Subscription {
        billing_cycle: BillingCycle::Lifetime,
        renews_at: None,
        ..subscription(SubscriptionStatus::Active)
    };
    for (sub, error) in [
        (&provider, SelfServiceError::ProviderManaged),
        (&lifetime, SelfServiceError::LifetimeCancelled),
    ] {
        let to = Some(SubscriptionStatus::Cancelled);
        assert_eq!(sub.update_by_user(to, None, false, day(5)), Err(error));
    }
    let cancelled =
        provider.update_by_user(Some(SubscriptionStatus::Cancelled), None, true, day(5));
    let status = cancelled.unwrap().unwrap().after.status;
    assert_eq!(
        status,
        SubscriptionStatus::Cancelled,
        "the provider follows"
    );
}
