//! Subscription plans: what a tenant offers, and at what price.

use std::{fmt, str::FromStr};

use jiff::Timestamp;

use crate::{BillingCycle, Href, Invalid, Line, Money, PlanId, Prose, Rule, words::quoted};

/// The name by which a plan is addressed: 1 to 64 of letters, digits, `.`, `_` and `-`, starting
/// with a letter or digit. Kept as written, unique regardless of case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slug(String);

impl Slug {
    /// The slug as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Slug {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.len() > 64 {
            let message = "a slug has at most 64 characters";
            return Err(Invalid::new(Rule::TooLong, message));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let starts_well = text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        if starts_well && text.bytes().all(allowed) {
            return Ok(Self(text.to_owned()));
        }
        let message = format!(
            "{} is not a slug: expected letters, digits, \".\", \"_\" and \"-\", starting with a letter or digit",
            quoted(text)
        );
        Err(Invalid::new(Rule::InvalidFormat, message))
    }
}

macro_rules! bounded_integer {
    ($(#[$doc:meta])* $name:ident, $min:literal ..= $max:expr, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name(i32);

        impl $name {
            /// The smallest allowed value.
            pub const MIN: i32 = $min;
            /// The largest allowed value.
            pub const MAX: i32 = $max;

            /// The number.
            pub fn get(self) -> i32 {
                self.0
            }
        }

        impl TryFrom<i64> for $name {
            type Error = Invalid;

            fn try_from(value: i64) -> Result<Self, Invalid> {
                match i32::try_from(value) {
                    Ok(value) if (Self::MIN..=Self::MAX).contains(&value) => Ok(Self(value)),
                    _ => Err(Invalid::new(Rule::OutOfRange, format!("must be {}", $what))),
                }
            }
        }
    };
}

bounded_integer! {
    /// How many nodes a subscriber may run; -1 is unlimited.
    NodeQuota, -1 ..= i32::MAX, "from 0 to 2147483647, or -1 for unlimited"
}

impl NodeQuota {
    /// Whether it lets more nodes run than another.
    pub fn exceeds(self, other: Self) -> bool {
        let nodes = |quota: Self| u32::try_from(quota.0).unwrap_or(u32::MAX);
        nodes(self) > nodes(other)
    }
}

bounded_integer! {
    /// Where a plan stands among the others: the higher, the more it gives.
    Tier, 0 ..= 1_000, "from 0 to 1000"
}

/// Product variants at the payment provider: at most 100, each one line of at most 255 characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variants(Vec<Line<255>>);

impl Variants {
    /// The most that a plan may have.
    pub const MAX: usize = 100;

    /// Accepts a list that is not too long.
    pub fn new(items: Vec<Line<255>>) -> Result<Self, Invalid> {
        if items.len() > Self::MAX {
            let message = format!(
                "has {} items; at most {} are allowed",
                items.len(),
                Self::MAX
            );
            return Err(Invalid::new(Rule::TooMany, message));
        }
        Ok(Self(items))
    }

    /// The variants in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Line::as_str)
    }
}

/// A comma-separated list, held in one string: at most 5,000 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features(Prose<5_000>);

impl Features {
    /// The string exactly as it was sent.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The items: trimmed, empty ones dropped.
    pub fn list(&self) -> impl Iterator<Item = &str> {
        self.as_str()
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
    }
}

impl FromStr for Features {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.parse().map(Self)
    }
}

/// What somebody says of a plan when making one.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPlan {
    /// What people see.
    pub name: Line<200>,
    /// How it is addressed.
    pub slug: Slug,
    /// What one billing cycle costs.
    pub price: Money,
    /// How often it is paid for.
    pub billing_cycle: BillingCycle,
    /// The product at the payment provider.
    pub product_id: Option<Line<255>>,
    /// The product's variants there.
    pub variants: Variants,
    /// The plan's page.
    pub href: Option<Href>,
    /// What people read.
    pub description: Option<Prose<5_000>>,
    /// How many nodes a subscriber may run.
    pub node_quota: NodeQuota,
    /// What it includes.
    pub features: Option<Features>,
    /// Whether a pricing page should point it out.
    pub most_popular: bool,
    /// Where it stands among the others.
    pub tier: Tier,
    /// Whether it can be subscribed to.
    pub is_active: bool,
}

/// A plan as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its identifier.
    pub id: PlanId,
    /// What was said of it.
    pub terms: NewPlan,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Plan {
    /// A new plan, made at `now`.
    pub fn create(terms: NewPlan, id: PlanId, now: Timestamp) -> Self {
        Self {
            id,
            terms,
            created_at: now,
            updated_at: now,
        }
    }

    /// The plan with these terms from `now` on; `None` if they are what it has already.
    pub fn amend(&self, terms: NewPlan, now: Timestamp) -> Option<Self> {
        (terms != self.terms).then(|| Self {
            terms,
            updated_at: now,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        for good in ["a", "Pro", "pro-2.1_x", "9", &"x".repeat(64)] {
            assert_eq!(good.parse::<Slug>().unwrap().as_str(), good);
        }
        for bad in [
            "", "..", ".a", "-a", "_a", "a b", "a/b", "a%2fb", "ä", "a\0", "a'b",
        ] {
            assert_eq!(
                bad.parse::<Slug>().unwrap_err().rule,
                Rule::InvalidFormat,
                "{bad}"
            );
        }
        assert_eq!(
            "x".repeat(65).parse::<Slug>().unwrap_err().rule,
            Rule::TooLong
        );
    }

    #[test]
    fn features_are_kept_and_listed() {
        let features: Features = " a,, b ,c,".parse().unwrap();
        assert_eq!(features.as_str(), " a,, b ,c,");
        assert_eq!(features.list().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn integers_have_bounds() {
        assert_eq!(NodeQuota::try_from(-1).unwrap().get(), -1);
        assert!(NodeQuota::try_from(-2).is_err());
        assert!(NodeQuota::try_from(2_147_483_647).is_ok());
        assert!(NodeQuota::try_from(2_147_483_648).is_err());
        assert!(Tier::try_from(1_001).is_err());
    }
}
