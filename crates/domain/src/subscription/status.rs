//! Where a subscription stands, and where it can go from there.

use std::{fmt, str::FromStr};

use crate::Invalid;

/// Where a subscription stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not begun: the first payment is awaited.
    Pending,
    /// In a trial.
    OnTrial,
    /// Paid for.
    Active,
    /// Stopped for a while.
    Paused,
    /// A payment is late; access goes on for now.
    PastDue,
    /// A payment is so late that access has stopped.
    Unpaid,
    /// It will not renew; access goes on until it ends.
    Cancelled,
    /// It is over.
    Expired,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::OnTrial,
        Self::Active,
        Self::Paused,
        Self::PastDue,
        Self::Unpaid,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Other words for them that callers may use.
    pub const ALIASES: [(&'static str, Self); 6] = [
        ("trialing", Self::OnTrial),
        ("trial", Self::OnTrial),
        ("canceled", Self::Cancelled),
        ("incomplete", Self::Pending),
        ("incomplete_expired", Self::Expired),
        ("ended", Self::Expired),
    ];

    /// The word that we store and return.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::OnTrial => "on_trial",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::PastDue => "past_due",
            Self::Unpaid => "unpaid",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// What it can become by somebody's word. `expired` only becomes `active` together with a date in the future.
    pub const fn may_become(self) -> &'static [Self] {
        use Status::{Active, Cancelled, Expired, OnTrial, PastDue, Paused, Pending, Unpaid};
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

    /// Whether it gives access, while it has begun, has not ended and is not suspended.
    pub const fn gives_access(self) -> bool {
        match self {
            Self::OnTrial | Self::Active | Self::PastDue | Self::Cancelled => true,
            Self::Pending | Self::Paused | Self::Unpaid | Self::Expired => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let own = Self::ALL.map(|status| (status.as_str(), status));
        own.into_iter()
            .chain(Self::ALIASES)
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, status)| status)
            .ok_or_else(|| {
                let allowed = Self::ALL.map(Self::as_str).to_vec();
                Invalid::unknown_word("a status of a subscription", text, allowed)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_words_and_explains_the_others() {
        for status in Status::ALL {
            assert_eq!(status.as_str().to_uppercase().parse(), Ok(status));
        }
        assert_eq!("Canceled".parse(), Ok(Status::Cancelled));
        let error = "activ".parse::<Status>().unwrap_err();
        assert!(error.message.ends_with("did you mean \"active\"?"));
        assert_eq!(error.allowed.len(), 8);
    }

    #[test]
    fn the_grid_of_transitions() {
        let mut grid = format!("{:12}", "from \\ to");
        for to in Status::ALL {
            grid += &format!("{to:>11}", to = to.as_str());
        }
        for from in Status::ALL {
            grid += &format!("\n{:12}", from.as_str());
            for to in Status::ALL {
                let mark = match from.may_become().contains(&to) {
                    _ if from == to => "·",
                    true if from == Status::Expired => "with a date",
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
