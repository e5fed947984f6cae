//! What happens to a subscription next: the transitions that the domain's rule gives, in words.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    DueTransition, EntryType, LifecycleKind, Subscription, SubscriptionStatus, Transition,
};
use serde::Serialize;
use utoipa::{ToSchema, openapi::Ref};

use super::{
    plain_text::{date, sum},
    situation::{Situation, is_late_transition},
};
use crate::http::{
    response::{display, timestamp_or_null},
    schema::named,
};

/// The precision of stored timestamps.
const TICK: SignedDuration = SignedDuration::from_micros(1);

/// Something that happens next.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TimelineStep)]
pub struct NextStep {
    /// When it happens; null if a payment or a request decides. In the past if it is due and not applied yet.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-11-19T09:30:00.000000Z")]
    pub at: Option<Timestamp>,
    #[serde(serialize_with = "display")]
    #[schema(schema_with = status)]
    pub status: SubscriptionStatus,
    /// The same in words.
    #[schema(example = "Access ends on 2026-11-19 09:30 unless 19.99 USD is paid.")]
    pub sentence: String,
}

fn status() -> Ref {
    named::SUBSCRIPTION_STATUS.reference("The status afterwards.")
}

impl Situation<'_> {
    /// Lists what happens next: the next change, those that follow it without a payment, and the end.
    pub fn next_steps(&self) -> Vec<NextStep> {
        let mut steps = match self.kind() {
            LifecycleKind::Managed => self.managed_steps(),
            LifecycleKind::Recorded => self.reported_steps("your system"),
            LifecycleKind::Provider => self.reported_steps("the payment provider"),
        };
        steps.extend(self.end_step(&steps));
        let start = self.current.starts_at;
        let is_listed = steps.iter().any(|step| step.at == Some(start));
        if !self.has_started() && !is_listed && self.status().gives_access() {
            steps.insert(
                0,
                self.step(Some(start), format!("Access starts on {}.", date(start))),
            );
        }
        if steps.is_empty() {
            steps.push(self.step(None, self.idle_sentence()));
        }
        steps
    }

    fn step(&self, at: Option<Timestamp>, sentence: String) -> NextStep {
        NextStep {
            at,
            status: self.status(),
            sentence,
        }
    }

    fn managed_steps(&self) -> Vec<NextStep> {
        let mut steps = Vec::new();
        for (step, transition) in self.forecast_steps().into_iter().zip(&self.forecast) {
            steps.push(step);
            let is_end = Some(transition.at) == self.current.ends_at;
            if is_end || !is_late_transition(transition.transition) {
                break;
            }
        }
        // Only a paused subscription has covered time that ends without a transition.
        if self.status() == SubscriptionStatus::Paused
            && self.is_covered()
            && let Some(end) = self.renewal()
        {
            let sentence = format!("The covered time ends on {}; it stays paused.", date(end));
            steps.insert(0, self.step(Some(end), sentence));
        }
        steps
    }

    /// Returns the step of the end, if it is known and not listed yet.
    fn end_step(&self, listed: &[NextStep]) -> Option<NextStep> {
        let end = self.current.ends_at?;
        let is_over = self.status() == SubscriptionStatus::Expired;
        let is_listed = { listed.iter() }.any(|step| step.status == SubscriptionStatus::Expired);
        if is_over || is_listed {
            return None;
        }
        let steps = self.forecast_steps();
        let step = { steps.into_iter() }.find(|step| step.status == SubscriptionStatus::Expired);
        step.or_else(|| {
            Some(NextStep {
                at: Some(end),
                status: SubscriptionStatus::Expired,
                sentence: format!("Ends on {} at the latest.", date(end)),
            })
        })
    }

    /// Describes each transition of the forecast.
    pub fn forecast_steps(&self) -> Vec<NextStep> {
        let mut before = &self.current;
        let mut steps = Vec::new();
        for transition in &self.forecast {
            let sentence = self.describe(before, transition);
            let sentence = if transition.at <= self.now {
                format!("Due and not applied yet: {sentence}")
            } else {
                sentence
            };
            steps.push(NextStep {
                at: Some(transition.at),
                status: transition.after.status,
                sentence,
            });
            before = &transition.after;
        }
        steps
    }

    /// Describes a transition from `before`.
    fn describe(&self, before: &Subscription, next: &DueTransition) -> String {
        let at = date(next.at);
        let money = |minor_units| sum(minor_units, self.currency());
        let is_new = !before.was_covered() || before.status == SubscriptionStatus::OnTrial;
        let charge = self.charge_name(if is_new {
            "the first period"
        } else {
            "the next period"
        });
        let amount = before.amount().unwrap_or(0);
        let just_before = next.at.saturating_sub(TICK).unwrap_or(next.at);
        let has_access = before.has_access(just_before);
        let starts = before.starts_at >= next.at || before.status == SubscriptionStatus::Pending;
        match next.transition {
            Transition::Managed => format!("On {at} the service starts to manage it."),
            Transition::Started | Transition::Renewed => {
                let entries = next.entries.iter();
                let charges = entries.filter(|entry| entry.entry_type == EntryType::Period);
                let total: i64 = charges.map(|entry| -entry.amount).sum();
                let what = match before.status {
                    _ if starts => format!("Starts on {at}"),
                    SubscriptionStatus::OnTrial => format!("The trial ends on {at}"),
                    SubscriptionStatus::Cancelled => format!("Continues on {at}"),
                    _ => format!("Renews on {at}"),
                };
                if total == 0 {
                    format!("{what}, free of charge.")
                } else {
                    let (total, credit) = (money(total), money(before.credit));
                    format!("{what}: {charge} is charged, {total} from a credit of {credit}.")
                }
            }
            Transition::PastDue => {
                let missing =
                    { next.after.billing_summary(next.at) }.map_or(0, |due| due.amount_due);
                let (missing, amount) = (money(missing), money(amount));
                let what = match before.status {
                    _ if starts => format!("Starts on {at} and is past due"),
                    SubscriptionStatus::OnTrial => {
                        format!("The trial ends on {at}, and it becomes past due")
                    }
                    _ => format!("Becomes past due on {at}"),
                };
                format!("{what} unless {missing} is paid: {charge} costs {amount}.")
            }
            Transition::Unpaid => {
                let what = if has_access {
                    "Access ends"
                } else {
                    "Becomes unpaid"
                };
                format!(
                    "{what} on {at} unless {}.",
                    self.payment_until(before, just_before)
                )
            }
            Transition::Expired if before.ends_at == Some(next.at) => match before.status {
                SubscriptionStatus::Cancelled if has_access => {
                    format!("Access ends on {at}, because it is cancelled.")
                }
                _ if has_access => format!("Access ends on {at}, its end date."),
                _ => format!("Expires on {at}, its end date."),
            },
            Transition::Expired if before.status == SubscriptionStatus::Cancelled => {
                let missing = money(amount.saturating_sub(before.credit));
                let what = if has_access { "Access ends" } else { "Expires" };
                format!(
                    "{what} on {at}, before its end date, unless {missing} is paid for the next period."
                )
            }
            Transition::Expired => {
                format!(
                    "Expires on {at} unless {}.",
                    self.payment_until(before, just_before)
                )
            }
        }
    }

    /// Names the payment that prevents a transition just after an instant. It may be more than what is due now, because
    /// another period starts before.
    fn payment_until(&self, before: &Subscription, just_before: Timestamp) -> String {
        let missing = amount_due(before, just_before);
        let (text, now) = (self.sum(missing), self.amount_due());
        if self.is_late() && now > 0 && now < missing {
            format!("{text} is paid by then, or {} now", self.sum(now))
        } else {
            format!("{text} is paid")
        }
    }

    /// Lists what is known if a client or a payment provider reports every change.
    fn reported_steps(&self, reporter: &str) -> Vec<NextStep> {
        let Some(renewal) = self.renewal().filter(|renewal| *renewal > self.now) else {
            return Vec::new();
        };
        let at = date(renewal);
        let sentence = match self.status() {
            SubscriptionStatus::OnTrial => {
                format!("The trial ends on {at}, and {reporter} reports what follows.")
            }
            SubscriptionStatus::Active => {
                format!("Renews on {at}, and {reporter} reports the renewal or a missing payment.")
            }
            _ => return Vec::new(),
        };
        vec![self.step(Some(renewal), sentence)]
    }

    /// Returns the sentence for a subscription that time alone does not change.
    fn idle_sentence(&self) -> String {
        let is_provider = self.kind() == LifecycleKind::Provider;
        let reporter = if is_provider {
            "the payment provider"
        } else {
            "your system"
        };
        match self.status() {
            SubscriptionStatus::Expired if is_provider => {
                "Stays expired; a new purchase creates another subscription.".to_owned()
            }
            SubscriptionStatus::Expired => "Stays expired until it is reopened.".to_owned(),
            SubscriptionStatus::Paused => "Stays paused until it is resumed.".to_owned(),
            SubscriptionStatus::Pending => {
                format!("Stays pending until {reporter} reports another status.")
            }
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid if is_provider => {
                let status = super::status_sentence::name(self.status()).to_lowercase();
                format!("Stays {status} until {reporter} reports a payment or another status.")
            }
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                let status = super::status_sentence::name(self.status()).to_lowercase();
                format!(
                    "Stays {status} until a payment is completed or {reporter} reports another status."
                )
            }
            SubscriptionStatus::Active | SubscriptionStatus::OnTrial
                if self.current.renews_at.is_some() =>
            {
                format!("Nothing changes until {reporter} reports it.")
            }
            SubscriptionStatus::Active
            | SubscriptionStatus::OnTrial
            | SubscriptionStatus::Cancelled => "Nothing changes: it has no end.".to_owned(),
        }
    }
}

/// Returns the minor units to pay at an instant to be active.
fn amount_due(subscription: &Subscription, at: Timestamp) -> i64 {
    let summary = subscription.billing_summary(at);
    summary.map_or(0, |summary| summary.amount_due)
}
