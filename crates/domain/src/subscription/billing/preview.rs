//! What a change would do and cost, without effect.

use jiff::{SignedDuration, Timestamp};

use super::{EntryCause, LedgerEntry, PaymentPosting, TICK};
use crate::{
    Id, PaymentId,
    subscription::{Subscription, SubscriptionChanges, SubscriptionUpdateError},
};

/// How often a shortage can lead to another one: paying first starts a period at the old price,
/// which the change then returns in part.
const MAX_ROUNDS: usize = 16;

/// The result of a change that was not made.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The subscription afterwards. If the credit does not suffice, as if `amount_due` had been paid.
    pub after: Subscription,
    /// The entries that the change would post.
    pub entries: Vec<LedgerEntry>,
    /// Minor units to pay before the change; 0 if the credit suffices.
    pub amount_due: i64,
    /// Until when a payment of `amount_due` suffices; `None` if nothing is due.
    pub valid_until: Option<Timestamp>,
}

impl Subscription {
    /// Returns what `changes` would do at `now`.
    pub fn preview(
        &self,
        changes: &SubscriptionChanges,
        now: Timestamp,
    ) -> Result<Preview, SubscriptionUpdateError> {
        // What is shown before a payment counts: a payment moves fields such as `renews_at`.
        let changes = &RequestedChanges {
            differing: changes.differing_from(&self.as_of(now), now),
            status_sent: changes.status.is_some(),
        };
        let mut amount_due = 0;
        let mut result = self.attempt(changes, 0, (now, now))?;
        for _ in 0..MAX_ROUNDS {
            if let Attempt::Short { missing } = result {
                amount_due += missing;
            } else if amount_due == 0 {
                break;
            } else {
                let at = self.valid_until(amount_due, now);
                let at = at.saturating_sub(TICK).unwrap_or(now).max(now);
                match self.attempt(changes, amount_due, (now, at))? {
                    Attempt::Short { missing } => amount_due += missing,
                    Attempt::Done(_) => break,
                }
            }
            result = self.attempt(changes, amount_due, (now, now))?;
        }
        match result {
            Attempt::Done(preview) => Ok(Preview {
                amount_due,
                valid_until: (amount_due > 0).then(|| self.valid_until(amount_due, now)),
                ..*preview
            }),
            Attempt::Short { .. } => Err(SubscriptionUpdateError::PaymentRequired {
                amount_due,
                valid_until: None,
            }),
        }
    }

    /// Pays `amount` at `now` and applies `changes` at `at`.
    fn attempt(
        &self,
        changes: &RequestedChanges,
        amount: i64,
        (now, at): (Timestamp, Timestamp),
    ) -> Result<Attempt, SubscriptionUpdateError> {
        let (paid, mut entries) = self.with_payment(amount, now);
        match paid.try_update(&changes.differing, changes.status_sent, at) {
            Ok(Some(applied)) => {
                entries.extend(applied.entries().cloned());
                Ok(Attempt::Done(Box::new(Preview {
                    after: applied.after,
                    entries,
                    amount_due: 0,
                    valid_until: None,
                })))
            }
            Ok(None) => Ok(Attempt::Done(Box::new(Preview {
                after: paid,
                entries,
                amount_due: 0,
                valid_until: None,
            }))),
            Err(SubscriptionUpdateError::PaymentRequired { amount_due, .. }) => {
                let missing = amount_due.max(1);
                Ok(Attempt::Short { missing })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the subscription after a payment, and the entries that it posts.
    fn with_payment(&self, amount: i64, now: Timestamp) -> (Self, Vec<LedgerEntry>) {
        if amount == 0 {
            return (self.clone(), Vec::new());
        }
        let posting = PaymentPosting {
            payment: PaymentId::new(uuid::Uuid::nil()),
            cause: EntryCause::Payment,
            amount,
            waived: 0,
            lost: 0,
        };
        match self.apply_posting(&posting, now) {
            Some(applied) => {
                let mut entries: Vec<_> = applied.entries().cloned().collect();
                for entry in &mut entries {
                    entry.payment = None;
                }
                (applied.after, entries)
            }
            None => (self.clone(), Vec::new()),
        }
    }

    /// Returns until when an amount that is paid now suffices: for an hour, and before anything is due.
    fn valid_until(&self, amount: i64, now: Timestamp) -> Timestamp {
        let (paid, _) = self.with_payment(amount, now);
        let hour = now
            .saturating_add(SignedDuration::from_hours(1))
            .unwrap_or(now);
        let due = [self, &paid].into_iter().flat_map(|sub| {
            let trial_end = sub.trial.map(|trial| trial.ends_at);
            let deadline = sub.due_at();
            let open_end = sub.late_since.and_then(|_| sub.open_period_end());
            [
                sub.renews_at,
                sub.ends_at,
                Some(sub.starts_at),
                trial_end,
                deadline,
                open_end,
            ]
        });
        due.flatten()
            .filter(|due| *due > now)
            .fold(hour, Timestamp::min)
    }
}

/// The changes of a request, without the fields that equal what is shown.
struct RequestedChanges {
    differing: SubscriptionChanges,
    status_sent: bool,
}

enum Attempt {
    Done(Box<Preview>),
    Short { missing: i64 },
}
