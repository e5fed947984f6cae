//! Where a payment stands, and where it can go from there.

use std::{fmt, str::FromStr};

use crate::Invalid;

/// Where a payment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentStatus {
    /// On its way.
    Pending,
    /// The money is there.
    Completed,
    /// It did not work; it may yet.
    Failed,
    /// Some of it was given back.
    PartiallyRefunded,
    /// All of it was given back.
    Refunded,
    /// The payer's bank wants it back.
    Disputed,
    /// It never was.
    Void,
}

impl PaymentStatus {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Completed,
        Self::Failed,
        Self::PartiallyRefunded,
        Self::Refunded,
        Self::Disputed,
        Self::Void,
    ];

    /// Other words for them that callers may use.
    pub const ALIASES: [(&'static str, Self); 10] = [
        ("paid", Self::Completed),
        ("succeeded", Self::Completed),
        ("success", Self::Completed),
        ("complete", Self::Completed),
        ("partial_refund", Self::PartiallyRefunded),
        ("canceled", Self::Void),
        ("cancelled", Self::Void),
        ("voided", Self::Void),
        ("declined", Self::Failed),
        ("chargeback", Self::Disputed),
    ];

    /// The word that we store and return.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::PartiallyRefunded => "partially_refunded",
            Self::Refunded => "refunded",
            Self::Disputed => "disputed",
            Self::Void => "void",
        }
    }

    /// What it can become.
    pub const fn may_become(self) -> &'static [Self] {
        use PaymentStatus::{
            Completed, Disputed, Failed, PartiallyRefunded, Pending, Refunded, Void,
        };
        match self {
            Pending => &[Completed, Failed, Void],
            Failed => &[Pending, Completed, Void],
            Completed => &[PartiallyRefunded, Refunded, Disputed],
            PartiallyRefunded => &[Refunded, Disputed],
            Disputed => &[Completed, Refunded],
            Refunded | Void => &[],
        }
    }

    /// Whether money has come: what it was for, and how much, is a matter of record.
    pub const fn is_settled(self) -> bool {
        match self {
            Self::Completed | Self::PartiallyRefunded | Self::Refunded | Self::Disputed => true,
            Self::Pending | Self::Failed | Self::Void => false,
        }
    }
}

impl PaymentStatus {
    /// Whether some of it may have been given back, and not all.
    pub(super) const fn may_have_given_back(self) -> bool {
        match self {
            Self::PartiallyRefunded | Self::Disputed | Self::Completed => true,
            Self::Pending | Self::Failed | Self::Refunded | Self::Void => false,
        }
    }
}

impl fmt::Display for PaymentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PaymentStatus {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let own = Self::ALL.map(|status| (status.as_str(), status));
        own.into_iter()
            .chain(Self::ALIASES)
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, status)| status)
            .ok_or_else(|| {
                let allowed = Self::ALL.map(Self::as_str).to_vec();
                Invalid::unknown_word("a status of a payment", text, allowed)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_of_transitions() {
        let mut grid = format!("{:20}", "from \\ to");
        for to in PaymentStatus::ALL {
            grid += &format!("{to:>20}", to = to.as_str());
        }
        for from in PaymentStatus::ALL {
            grid += &format!("\n{:20}", from.as_str());
            for to in PaymentStatus::ALL {
                let mark = match from.may_become().contains(&to) {
                    _ if from == to => "·",
                    true => "yes",
                    false => "",
                };
                grid += &format!("{mark:>20}");
            }
        }
        let lines: Vec<&str> = grid.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(lines.join("\n"));
        assert_eq!("Chargeback".parse(), Ok(PaymentStatus::Disputed));
    }
}
