//! How often a plan is paid for.

use std::{fmt, str::FromStr};

use crate::Invalid;

/// How often a plan is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BillingCycle {
    /// Every day.
    Daily,
    /// Every seven days.
    Weekly,
    /// Every month.
    Monthly,
    /// Every three months.
    Quarterly,
    /// Every six months.
    Semiannual,
    /// Every year.
    Yearly,
    /// Once, for ever.
    Lifetime,
}

impl BillingCycle {
    /// All of them, shortest first.
    pub const ALL: [Self; 7] = [
        Self::Daily,
        Self::Weekly,
        Self::Monthly,
        Self::Quarterly,
        Self::Semiannual,
        Self::Yearly,
        Self::Lifetime,
    ];

    /// The word that we store and return.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Quarterly => "quarterly",
            Self::Semiannual => "semiannual",
            Self::Yearly => "yearly",
            Self::Lifetime => "lifetime",
        }
    }
}

impl fmt::Display for BillingCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BillingCycle {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "daily" | "day" => Self::Daily,
            "weekly" | "week" => Self::Weekly,
            "monthly" | "month" => Self::Monthly,
            "quarterly" | "quarter" => Self::Quarterly,
            "semiannual" | "half_yearly" => Self::Semiannual,
            "yearly" | "year" | "annual" | "annually" => Self::Yearly,
            "lifetime" | "one_time" => Self::Lifetime,
            _ => {
                let allowed = Self::ALL.map(Self::as_str).to_vec();
                return Err(Invalid::unknown_word("a billing cycle", text, allowed));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_words_and_explains_the_others() {
        for cycle in BillingCycle::ALL {
            assert_eq!(cycle.as_str().to_uppercase().parse(), Ok(cycle));
        }
        assert_eq!("Annually".parse(), Ok(BillingCycle::Yearly));
        let error = "montly".parse::<BillingCycle>().unwrap_err();
        assert_eq!(
            error.message,
            r#""montly" is not a billing cycle; did you mean "monthly"?"#
        );
        assert_eq!(error.allowed.len(), 7);
    }
}
