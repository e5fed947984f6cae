//! What fixes a subscription that the service charges: payments, and changes of its status.

use perennial_domain::{SubscriptionStatus, Transition};

use super::{
    fixes::{Fix, FixRequest, RESUME, UNDO, raw},
    plain_text::date,
    situation::Situation,
};

impl Situation<'_> {
    pub(super) fn managed_fixes(&self) -> Vec<Fix> {
        let due = self.amount_due();
        let due_text = self.sum(due);
        let payment = |sentence: String| (due > 0).then(|| self.payment(due, sentence));
        let mut fixes = Vec::new();
        match self.status() {
            SubscriptionStatus::Pending => {
                let start = self.current.starts_at;
                let when = if self.has_started() {
                    String::new()
                } else {
                    format!(" on {}", date(start))
                };
                fixes.extend(payment(format!(
                    "A completed payment of {due_text} or more starts it{when}."
                )));
            }
            SubscriptionStatus::OnTrial | SubscriptionStatus::Active => {
                fixes.extend(self.payment_in_advance());
            }
            SubscriptionStatus::PastDue | SubscriptionStatus::Unpaid => {
                let also = if self.is_open_period_over() {
                    ": it pays the period that is over and the next one"
                } else {
                    ""
                };
                fixes.extend(payment(format!(
                    "A completed payment of {due_text} or more makes it active{also}."
                )));
                fixes.extend(self.resolve_dispute());
            }
            SubscriptionStatus::Paused => {
                let effect = if self.is_late() {
                    "pays what is late; it stays paused"
                } else {
                    "becomes credit, which pays the period that starts when it is resumed"
                };
                fixes.extend(payment(format!(
                    "A completed payment of {due_text} or more {effect}."
                )));
                fixes.extend(self.resolve_dispute());
                fixes.push(self.activate("resume", &self.resume_sentence()));
            }
            SubscriptionStatus::Cancelled => {
                fixes.push(self.activate("undo_cancellation", UNDO));
                fixes.extend(self.payment_in_advance());
            }
            SubscriptionStatus::Expired => {
                fixes.extend(payment(format!(
                    "A completed payment of {due_text} or more becomes credit, with which it can be reopened."
                )));
                let amount = self.amount();
                let sentence = match (due, amount) {
                    (_, 0) => "Setting the status to active reopens it, free of charge.".to_owned(),
                    (0, _) => format!(
                        "Setting the status to active reopens it: a new period of {} is charged from the credit.",
                        self.sum(amount)
                    ),
                    _ => "After the payment, setting the status to active reopens it.".to_owned(),
                };
                fixes.push(self.activate("reopen", &sentence));
            }
        }
        fixes
    }

    /// Returns the payment that prevents the next transition, if a missing one causes it.
    fn payment_in_advance(&self) -> Option<Fix> {
        let next = self.forecast.first()?;
        let is_early_end =
            next.transition == Transition::Expired && self.current.ends_at != Some(next.at);
        if next.transition != Transition::PastDue && !is_early_end {
            return None;
        }
        if next.at <= self.now {
            return self.payment_for_due();
        }
        let missing = self.amount().saturating_sub(self.current.credit);
        let is_first = !self.current.was_covered() || self.status() == SubscriptionStatus::OnTrial;
        let charge = self.charge_name(if is_first {
            "the first period"
        } else {
            "the next period"
        });
        let (text, at) = (self.sum(missing), date(next.at));
        let sentence = format!("A completed payment of {text} or more by {at} pays {charge}.");
        Some(self.payment(missing, sentence))
    }

    /// Returns the payment for transitions that are due and not applied yet.
    fn payment_for_due(&self) -> Option<Fix> {
        let due = self.forecast.iter().take_while(|step| step.at <= self.now);
        let state = &due.last()?.after;
        let missing = state.billing_summary(self.now)?.amount_due;
        if missing == 0 || state.status == SubscriptionStatus::Expired {
            return None;
        }
        let text = self.sum(missing);
        let sentence = format!("A completed payment of {text} or more keeps it active.");
        Some(self.payment(missing, sentence))
    }

    /// Returns whether the period that is not paid has ended, so that a payment has to pay two.
    fn is_open_period_over(&self) -> bool {
        let missing = self.amount().saturating_sub(self.current.credit);
        self.amount_due() > missing
    }

    fn resolve_dispute(&self) -> Option<Fix> {
        let effect = if self.is_covered() {
            "ends the lateness"
        } else {
            "reduces what is missing"
        };
        let sentence =
            format!("If the dispute is won, setting the disputed payment to completed {effect}.");
        (self.current.credit < 0).then(|| Fix {
            action: "resolve_dispute",
            sentence,
            amount: None,
            currency: None,
            request: Some(FixRequest {
                method: "PUT",
                path: "/subscription-payments/{payment_id}".to_owned(),
                body: raw(r#"{"status":"completed"}"#.to_owned()),
            }),
        })
    }

    fn resume_sentence(&self) -> String {
        if self.is_late() {
            let sentence = "Setting the status to active resumes it; without the payment, it is then past due or unpaid.";
            return sentence.to_owned();
        }
        match self.amount_due() {
            _ if self.is_covered() || !self.has_started() => RESUME.to_owned(),
            0 if self.amount() == 0 => RESUME.to_owned(),
            0 => format!(
                "Setting the status to active resumes it: a new period of {} is charged from the credit.",
                self.sum(self.amount())
            ),
            _ => {
                "Setting the status to active resumes it; without the payment, it is then past due."
                    .to_owned()
            }
        }
    }
}
