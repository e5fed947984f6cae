//! The subscription status and its allowed transitions.

string_enum! {
    /// The status of a subscription.
    pub enum SubscriptionStatus: "a subscription status" {
        /// Waiting for the first payment.
        Pending = "pending",
        /// In a trial.
        OnTrial = "on_trial",
        /// Paid.
        Active = "active",
        /// Paused; no access.
        Paused = "paused",
        /// A payment is overdue; access continues for now.
        PastDue = "past_due",
        /// A payment is overdue for so long that access is withdrawn.
        Unpaid = "unpaid",
        /// Will not renew; access continues until `ends_at`.
        Cancelled = "cancelled",
        /// Ended.
        Expired = "expired",
    } aliases {
        "trialing" => OnTrial,
        "trial" => OnTrial,
        "canceled" => Cancelled,
        "incomplete" => Pending,
        "incomplete_expired" => Expired,
        "ended" => Expired,
    }
}

impl SubscriptionStatus {
    /// Returns the statuses that a request can change this one to. Changing from `expired` to
    /// `active` also requires a `renews_at` or `ends_at` in the future.
    pub const fn allowed_transitions(self) -> &'static [Self] {
        use SubscriptionStatus::{
            Active, Cancelled, Expired, OnTrial, PastDue, Paused, Pending, Unpaid,
        };
        match self {
            Pending => &[OnTrial, Active, PastDue, Cancelled, Expired],
            OnTrial => &[Active, PastDue, Unpaid, Paused, Cancelled, Expired],
            Active => &[PastDue, Unpaid, Paused, Cancelled, Expired],
            PastDue => &[Active, Unpaid, Paused, Cancelled, Expired],
            Unpaid => &[Active, PastDue, Cancelled, Expired],
            Paused => &[Active, OnTrial, PastDue, Unpaid, Cancelled, Expired],
            Cancelled => &[Active, OnTrial, Expired],
            Expired => &[Active],
        }
    }

    /// Returns whether the status gives access, provided that the subscription has started, has not
    /// ended and is not suspended.
    pub const fn gives_access(self) -> bool {
        match self {
            Self::OnTrial | Self::Active | Self::PastDue | Self::Cancelled => true,
            Self::Pending | Self::Paused | Self::Unpaid | Self::Expired => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_parses_in_any_case_and_typo_gets_a_suggestion() {
        for status in SubscriptionStatus::ALL {
            assert_eq!(status.as_str().to_uppercase().parse(), Ok(status));
        }
        assert_eq!("Canceled".parse(), Ok(SubscriptionStatus::Cancelled));
        for (typo, status) in [("canceld", "cancelled"), ("trialling", "on_trial")] {
            let error = typo.parse::<SubscriptionStatus>().unwrap_err();
            let suggestion = format!("did you mean \"{status}\"?");
            assert!(error.message.ends_with(&suggestion), "{}", error.message);
        }
        let error = "activ".parse::<SubscriptionStatus>().unwrap_err();
        assert!(error.message.ends_with("did you mean \"active\"?"));
        assert_eq!(error.allowed.len(), 8);
    }

    #[test]
    fn transition_grid() {
        let mut grid = format!("{:12}", "from \\ to");
        for to in SubscriptionStatus::ALL {
            grid += &format!("{to:>11}", to = to.as_str());
        }
        for from in SubscriptionStatus::ALL {
            grid += &format!("\n{:12}", from.as_str());
            for to in SubscriptionStatus::ALL {
                let mark = match from.allowed_transitions().contains(&to) {
                    _ if from == to => "·",
                    true if from == SubscriptionStatus::Expired => "with a date",
                    true => "yes",
                    false => "",
                };
                grid += &format!("{mark:>11}");
            }
        }
        let lines: Vec<&str> = grid.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
