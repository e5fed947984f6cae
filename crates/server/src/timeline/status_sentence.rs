//! The sentence that states the status of a subscription, since when, and why.

use jiff::Timestamp;
use perennial_domain::{LifecycleKind, Subscription, SubscriptionStatus, Transition};

use super::{history::ExpiryReason, plain_text::date, situation::Situation};

/// Returns the sentence about a deleted subscription.
pub fn deleted_sentence(subscription: &Subscription, deleted_at: Timestamp) -> String {
    let status = name(subscription.status_at(deleted_at)).to_lowercase();
    let deleted_at = date(deleted_at);
    format!("Deleted on {deleted_at}: it was {status} and gives no access.")
}

/// Returns a status in plain words.
pub fn name(status: SubscriptionStatus) -> &'static str {
    match status {
        SubscriptionStatus::Pending => "Pending",
        SubscriptionStatus::OnTrial => "On trial",
        SubscriptionStatus::Active => "Active",
        SubscriptionStatus::Paused => "Paused",
        SubscriptionStatus::PastDue => "Past due",
        SubscriptionStatus::Unpaid => "Unpaid",
        SubscriptionStatus::Cancelled => "Cancelled",
        SubscriptionStatus::Expired => "Expired",
    }
}

impl Situation<'_> {
    /// Returns one sentence: the status, since when, and why.
    pub fn sentence(&self) -> String {
        let status = name(self.status());
        if !self.has_started() && self.status().gives_access() {
            let start = date(self.current.starts_at);
            return format!(
                "{status} from {start}: it has not started yet{}.",
                self.additions()
            );
        }
        let since = self.since().map(date);
        let since = since.map_or(String::new(), |since| format!(" since {since}"));
        format!("{status}{since}: {}{}.", self.reason(), self.additions())
    }

    /// States what applies in addition to the status: an end date, an unknown price and a suspension.
    fn additions(&self) -> String {
        let status = self.status();
        let has_own_end = matches!(
            status,
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired
        );
        let mut text = String::new();
        if let Some(end) = self
            .current
            .ends_at
            .filter(|_| !has_own_end && !self.states_end())
        {
            text.push_str(&format!(", and the subscription ends on {}", date(end)));
        }
        if self.is_unpriced() && status != SubscriptionStatus::Expired {
            text.push_str("; its price is unknown, so the service does not charge it");
        }
        text.push_str(match (self.current.suspended, status) {
            (false, _) => "",
            (true, SubscriptionStatus::PastDue) => ", and access is suspended",
            (true, status) if status.gives_access() => ", but access is suspended",
            (true, _) => "; it is also suspended",
        });
        text
    }

    /// Returns whether the reason for the status is its end date.
    fn states_end(&self) -> bool {
        let is_reported = self.kind() != LifecycleKind::Managed && self.renewal().is_none();
        let runs = matches!(
            self.status(),
            SubscriptionStatus::OnTrial | SubscriptionStatus::Active
        );
        is_reported && runs && self.has_started()
    }

    /// Returns since when the subscription has its status, if that is known.
    fn since(&self) -> Option<Timestamp> {
        let current = &self.current;
        let known = self.history.since(self.status());
        match self.status() {
            // No other status becomes pending.
            SubscriptionStatus::Pending => Some(current.created_at),
            SubscriptionStatus::Expired => current.ends_at,
            SubscriptionStatus::PastDue => known.or(current.late_since),
            SubscriptionStatus::OnTrial
            | SubscriptionStatus::Active
            | SubscriptionStatus::Paused
            | SubscriptionStatus::Unpaid
            | SubscriptionStatus::Cancelled => known,
        }
    }

    fn reason(&self) -> String {
        match (self.status(), self.kind()) {
            (SubscriptionStatus::Cancelled, _) => self.cancelled_reason(),
            (SubscriptionStatus::Expired, _) => self.expired_reason(),
            (_, LifecycleKind::Managed) => self.managed_reason(),
            (_, LifecycleKind::Recorded) => self.reported_reason("your system"),
            (_, LifecycleKind::Provider) => self.reported_reason("the payment provider"),
        }
    }

    fn cancelled_reason(&self) -> String {
        let Some(end) = self.current.ends_at else {
            return "it ends".to_owned();
        };
        let first_end = self
            .forecast
            .iter()
            .find(|step| step.transition == Transition::Expired);
        match first_end.map(|step| step.at).filter(|first| *first < end) {
            Some(first) => {
                let (first, end) = (date(first), date(end));
                format!("it is paid until {first} and ends on {end} at the latest")
            }
            None if self.current.suspended => format!("it ends on {}", date(end)),
            None => format!("it gives access until {} and ends then", date(end)),
        }
    }

    fn expired_reason(&self) -> String {
        let by_provider = self.kind() == LifecycleKind::Provider;
        let reason = match self.history.expiry_reason() {
            ExpiryReason::FirstPaymentMissing => "the first payment did not arrive in time",
            ExpiryReason::PaymentMissing => "a late payment did not arrive in time",
            ExpiryReason::Cancelled => "it was cancelled and has reached its end",
            ExpiryReason::EndReached => "it has reached its end date",
            ExpiryReason::UserErased => "the user was erased",
            ExpiryReason::Requested if by_provider => "the payment provider reported its end",
            ExpiryReason::Requested => "a request ended it",
            ExpiryReason::Unknown => "it has ended",
        };
        reason.to_owned()
    }

    /// Names what is charged next: a period or the lifetime.
    pub fn charge_name(&self, period: &'static str) -> &'static str {
        if self.is_lifetime() {
            "the lifetime"
        } else {
            period
        }
    }

    fn managed_reason(&self) -> String {
        let current = &self.current;
        match self.status() {
            SubscriptionStatus::Pending => self.pending_reason(),
            SubscriptionStatus::OnTrial => match current.renews_at {
                Some(end) if end > self.now => format!("the trial is free until {}", date(end)),
                Some(end) => format!("the trial ended on {}", date(end)),
                None => "the trial is free".to_owned(),
            },
            SubscriptionStatus::Active => self.active_reason(),
            SubscriptionStatus::PastDue => self.late_reason(),
            SubscriptionStatus::Unpaid => format!("{}, so access is withdrawn", self.late_reason()),
            SubscriptionStatus::Paused if self.is_late() => {
                let since = current.late_since.map(date).unwrap_or_default();
                format!(
                    "it gives no access and is late since {since}, because {}",
                    self.late_reason()
                )
            }
            SubscriptionStatus::Paused => match current.renews_at {
                Some(end) if self.is_covered() => {
                    format!(
                        "it gives no access, and its covered time runs on until {}",
                        date(end)
                    )
                }
                None if self.is_covered() => "it gives no access".to_owned(),
                _ => "it gives no access and is not charged".to_owned(),
            },
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired => String::new(),
        }
    }

    fn pending_reason(&self) -> String {
        let (start, amount) = (self.current.starts_at, self.amount());
        let what = self.charge_name("the first period");
        let (is_future, is_paid) = (start > self.now, self.amount_due() == 0);
        match (is_paid, is_future) {
            (true, _) if amount == 0 => {
                format!("it is free of charge and starts on {}", date(start))
            }
            (true, _) => format!("{what} is paid and starts on {}", date(start)),
            (false, false) => format!("{what} {}", self.unpaid_text()),
            (false, true) => {
                let unpaid = self.unpaid_text();
                format!(
                    "{what} {unpaid}, and it starts on {} at the earliest",
                    date(start)
                )
            }
        }
    }

    /// States what a period costs, and how much of it is missing.
    fn unpaid_text(&self) -> String {
        let (amount, credit) = (self.sum(self.amount()), self.current.credit);
        match credit {
            1.. => format!(
                "costs {amount}, and only {} of it is paid",
                self.sum(credit)
            ),
            _ => format!("costs {amount} and is not paid"),
        }
    }

    fn active_reason(&self) -> String {
        let billing = self.billing();
        let start = billing.and_then(|billing| billing.period_starts_at);
        let end = billing.and_then(|billing| billing.period_ends_at);
        let is_charged = { self.current.period }
            .is_some_and(|period| Some(period.starts_at) == start && period.amount() > 0);
        match (start, end, self.current.renews_at) {
            _ if self.amount() == 0 && self.is_covered() => "it is free of charge".to_owned(),
            (Some(start), Some(end), _) if is_charged => {
                format!("the period from {} to {} is paid", date(start), date(end))
            }
            (Some(_), None, _) if is_charged => "the lifetime is paid".to_owned(),
            (Some(start), Some(end), _) => {
                let (start, end) = (date(start), date(end));
                format!("the time from {start} to {end} is free of charge")
            }
            (Some(_), None, _) => "it is free of charge and has no end".to_owned(),
            (None, _, Some(renewal)) => format!("it was paid until {}", date(renewal)),
            (None, _, None) => "it has no end".to_owned(),
        }
    }

    fn late_reason(&self) -> String {
        let current = &self.current;
        let is_disputed = current.credit < 0;
        let open = current.renews_at.filter(|due| *due <= self.now);
        let due = self.sum(self.amount_due());
        match open {
            None if is_disputed => format!("a payment is disputed, and {due} is missing"),
            Some(open) if is_disputed => {
                let open = date(open);
                format!(
                    "a payment is disputed and the period from {open} is not paid, so {due} is missing"
                )
            }
            _ if self.is_lifetime() => format!("the lifetime {}", self.unpaid_text()),
            Some(open) => format!("the period from {} {}", date(open), self.unpaid_text()),
            None => format!("{due} is missing"),
        }
    }

    /// Explains a status that a client or a payment provider has reported.
    fn reported_reason(&self, reporter: &str) -> String {
        let end = self.current.ends_at.map(date);
        let free = if self.current.amount() == Some(0) {
            "it is free of charge and "
        } else {
            "it "
        };
        match self.status() {
            SubscriptionStatus::Pending => format!("{reporter} has not reported that it is active"),
            SubscriptionStatus::OnTrial => match self.renewal() {
                Some(end) if end > self.now => format!("the trial ends on {}", date(end)),
                Some(end) => {
                    let end = date(end);
                    format!(
                        "the trial ended on {end}, and {reporter} has not reported what follows"
                    )
                }
                None => match end {
                    Some(end) => format!("the trial ends on {end}"),
                    None => "the trial has no end".to_owned(),
                },
            },
            SubscriptionStatus::Active => match self.renewal() {
                Some(renewal) if renewal > self.now => format!("{free}renews on {}", date(renewal)),
                Some(renewal) => {
                    let renewal = date(renewal);
                    format!("{reporter} has not reported the renewal of {renewal}")
                }
                None => match end {
                    Some(end) => format!("{free}ends on {end}"),
                    None => format!("{free}does not renew and has no end"),
                },
            },
            SubscriptionStatus::PastDue => format!("{reporter} reported a late payment"),
            SubscriptionStatus::Unpaid => {
                format!("{reporter} reported that a payment is missing, so access is withdrawn")
            }
            SubscriptionStatus::Paused => "it gives no access until it is resumed".to_owned(),
            SubscriptionStatus::Cancelled | SubscriptionStatus::Expired => String::new(),
        }
    }
}
