//! Replays what a subscriber did, period by period.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    Money, Offer, PaymentStatus, Quantity, Subscription, SubscriptionChanges, SubscriptionStatus,
};

use super::{
    demo_plans::Plans,
    demo_subscribers::{Habit, Subscriber},
    subscriber_history::{History, MINUTE},
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The period in which one-time actions happen.
const ACTION_PERIOD: usize = 2;

/// When a period is due, and when the subscriber pays for it.
struct NextPeriod {
    due: Timestamp,
    pays_at: Timestamp,
    /// Whether the following period is paid after the end of the history.
    is_last: bool,
}

impl NextPeriod {
    /// Returns the period after `clock`, or `None` if there is none before `end`.
    fn after(
        clock: Timestamp,
        current: &Subscription,
        habit: Habit,
        end: Timestamp,
    ) -> anyhow::Result<Option<Self>> {
        let (due, pays_at) = match (current.status, current.renews_at) {
            (SubscriptionStatus::Pending, _) => (clock, clock.saturating_add(MINUTE * 10)?),
            (SubscriptionStatus::OnTrial, Some(due)) => (due, clock.saturating_add(DAY)?),
            (SubscriptionStatus::Active, Some(due)) if habit == Habit::Late => {
                (due, due.saturating_add(DAY * 3)?)
            }
            (SubscriptionStatus::Active, Some(due)) => {
                let before = due.saturating_sub(HOUR * 6)?;
                (due, before.max(clock.saturating_add(MINUTE)?))
            }
            _ => return Ok(None),
        };
        let following = current.billing_cycle.next_renewal(current.anchor, due);
        let following = following
            .map(|next| next.saturating_sub(HOUR * 6))
            .transpose()?;
        let period = Self {
            due,
            pays_at,
            is_last: following.is_none_or(|next| next > end),
        };
        Ok(Some(period).filter(|period| period.pays_at <= end))
    }
}

impl History<'_> {
    /// Replays payments and changes until `end`.
    pub async fn replay(
        &mut self,
        subscriber: &Subscriber,
        plans: &Plans,
        end: Timestamp,
    ) -> anyhow::Result<()> {
        let habit = subscriber.habit;
        let mut clock = subscriber.starts_at;
        let mut periods = 0;
        loop {
            let current = self.at(clock);
            let Some(period) = NextPeriod::after(clock, &current, habit, end)? else {
                break;
            };
            let amount = current.amount().unwrap_or(0);
            match habit {
                Habit::Stops(after) if periods >= after => break,
                Habit::Misses if period.is_last && amount > 0 => {
                    let at = period.due.saturating_add(HOUR)?;
                    if at <= end {
                        self.fail_payment(amount, at).await?;
                    }
                    break;
                }
                Habit::Cancels(after) if periods >= after => {
                    let status = SubscriptionStatus::Cancelled;
                    return self.set_status(status, period.pays_at).await;
                }
                _ => {}
            }
            let ahead = if period.is_last && habit.pays_ahead() {
                subscriber.periods_ahead
            } else {
                0
            };
            let missing = amount * (1 + ahead) - current.credit;
            if missing > 0 {
                self.pay(missing, period.pays_at).await?;
            }
            clock = period.due.max(period.pays_at);
            periods += 1;
            if periods == ACTION_PERIOD {
                clock = self.act(habit, plans, clock, end).await?;
            }
        }
        // The renewal before which the subscriber cancels may be in the future.
        if matches!(habit, Habit::Cancels(_)) && self.at(end).has_access(end) {
            self.set_status(SubscriptionStatus::Cancelled, end).await?;
        }
        Ok(())
    }

    /// Does what the habit says, about ten days after the start of the period at `start`. Returns the time
    /// until which nothing else happens.
    async fn act(
        &mut self,
        habit: Habit,
        plans: &Plans,
        start: Timestamp,
        end: Timestamp,
    ) -> anyhow::Result<Timestamp> {
        let at = start.saturating_add(DAY * 10 + HOUR * 5)?;
        if at > end {
            return Ok(start);
        }
        match habit {
            Habit::Upgrades => {
                let changes = match neighbor(plans, &self.subscription, 1) {
                    Some(offer) => to_plan(offer),
                    None => to_quantity(2)?,
                };
                self.change(&changes, at).await?;
            }
            Habit::Downgrades => {
                if let Some(offer) = neighbor(plans, &self.subscription, -1) {
                    self.change(&to_plan(offer), at).await?;
                }
            }
            Habit::ChangesQuantity => {
                self.change(&to_quantity(3)?, at).await?;
                let later = at.saturating_add(DAY * 7)?;
                if later <= end {
                    self.change(&to_quantity(2)?, later).await?;
                }
            }
            Habit::Pauses(days) => return self.pause(days, at, end).await,
            Habit::Refunded => {
                self.change_payment(PaymentStatus::Refunded, None, at)
                    .await?;
            }
            Habit::PartlyRefunded => {
                let amount = self.last_payment.as_ref().map(|payment| payment.amount);
                let quarter = amount.map(Money::minor_units).map(|amount| amount / 4);
                self.change_payment(PaymentStatus::PartiallyRefunded, quarter, at)
                    .await?;
            }
            Habit::Disputed => {
                self.change_payment(PaymentStatus::Disputed, None, at)
                    .await?;
                let won = at.saturating_add(DAY * 5)?;
                if won <= end {
                    self.change_payment(PaymentStatus::Completed, None, won)
                        .await?;
                }
            }
            Habit::OnTime | Habit::Late | Habit::Misses | Habit::Stops(_) | Habit::Cancels(_) => {}
        }
        Ok(start)
    }

    /// Pauses for some days. Before resuming after the end of the paid period, pays for the next.
    async fn pause(
        &mut self,
        days: i64,
        at: Timestamp,
        end: Timestamp,
    ) -> anyhow::Result<Timestamp> {
        self.set_status(SubscriptionStatus::Paused, at).await?;
        let resumes_at = at.saturating_add(DAY * i32::try_from(days)?)?;
        if resumes_at > end {
            return Ok(end);
        }
        let pays_at = resumes_at.saturating_sub(HOUR)?;
        let current = self.at(pays_at);
        let missing = current.amount().unwrap_or(0) - current.credit;
        if current.renews_at.is_some_and(|renewal| renewal <= pays_at) && missing > 0 {
            self.pay(missing, pays_at).await?;
        }
        self.set_status(SubscriptionStatus::Active, resumes_at)
            .await?;
        Ok(resumes_at)
    }
}

/// Returns the plan that is `step` places above the subscription's.
fn neighbor(plans: &Plans, subscription: &Subscription, step: isize) -> Option<Offer> {
    let is_current = |offer: &Offer| offer.plan == subscription.plan.id;
    let index = plans.iter().position(is_current)?;
    plans.get(index.checked_add_signed(step)?).copied()
}

fn to_plan(offer: Offer) -> SubscriptionChanges {
    SubscriptionChanges {
        offer: Some(offer),
        ..SubscriptionChanges::default()
    }
}

fn to_quantity(quantity: i64) -> anyhow::Result<SubscriptionChanges> {
    Ok(SubscriptionChanges {
        quantity: Some(Quantity::try_from(quantity)?),
        ..SubscriptionChanges::default()
    })
}
