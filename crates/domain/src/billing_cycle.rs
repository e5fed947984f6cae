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

    /// Other words for them that callers may use.
    pub const ALIASES: [(&'static str, Self); 9] = [
        ("day", Self::Daily),
        ("week", Self::Weekly),
        ("month", Self::Monthly),
        ("quarter", Self::Quarterly),
        ("half_yearly", Self::Semiannual),
        ("year", Self::Yearly),
        ("annual", Self::Yearly),
        ("annually", Self::Yearly),
        ("one_time", Self::Lifetime),
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
        let own = Self::ALL.map(|cycle| (cycle.as_str(), cycle));
        own.into_iter()
            .chain(Self::ALIASES)
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, cycle)| cycle)
            .ok_or_else(|| {
                let allowed = Self::ALL.map(Self::as_str).to_vec();
                Invalid::unknown_word("a billing cycle", text, allowed)
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
