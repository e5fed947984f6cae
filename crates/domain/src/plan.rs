//! Subscription plans: what a tenant sells, and at what price.

use std::{fmt, str::FromStr};

use arrayvec::ArrayString;
use jiff::Timestamp;

use crate::{
    BillingCycle, Href, Metadata, Money, MultiLine, PlanId, Rule, SingleLine, ValidationError,
    suggest::quoted,
};

/// A plan's name in URLs: 1 to 64 ASCII letters, digits, `.`, `_` and `-`, starting with a letter or
/// digit. A slug keeps its case. Uniqueness within a tenant ignores case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slug(ArrayString<64>);

impl Slug {
    /// Returns the slug in its original case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether both are of the same plan: equal, ignoring case.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Slug {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        if text.len() > 64 {
            let message = "must have at most 64 characters";
            return Err(ValidationError::new(Rule::TooLong, message));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let starts_alphanumeric = text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric());
        if starts_alphanumeric
            && text.bytes().all(allowed)
            && let Ok(slug) = ArrayString::from(text)
        {
            return Ok(Self(slug));
        }
        let message = format!(
            "{} is not a slug: must have only letters, digits, \".\", \"_\" and \"-\", and start with a letter or digit",
            quoted(text)
        );
        Err(ValidationError::new(Rule::InvalidFormat, message))
    }
}

macro_rules! bounded_integer {
    ($(#[$doc:meta])* $name:ident, $min:literal ..= $max:expr, $range:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name(i32);

        impl $name {
            /// The smallest allowed value.
            pub const MIN: i32 = $min;
            /// The largest allowed value.
            pub const MAX: i32 = $max;

            /// Returns the number.
            pub fn get(self) -> i32 {
                self.0
            }
        }

        impl TryFrom<i64> for $name {
            type Error = ValidationError;

            fn try_from(value: i64) -> Result<Self, ValidationError> {
                match i32::try_from(value) {
                    Ok(value) if (Self::MIN..=Self::MAX).contains(&value) => Ok(Self(value)),
                    _ => Err(ValidationError::new(Rule::OutOfRange, format!("must be {}", $range))),
                }
            }
        }
    };
}

bounded_integer! {
    /// Number of nodes a subscriber may run; -1 is unlimited. The nodes are those of the tenant's app,
    /// which enforces the quota.
    NodeQuota, -1 ..= i32::MAX, "from 0 to 2147483647, or -1 for unlimited"
}

impl NodeQuota {
    /// Returns whether this quota allows more nodes than `other`.
    pub fn exceeds(self, other: Self) -> bool {
        let nodes = |quota: Self| u32::try_from(quota.0).unwrap_or(u32::MAX);
        nodes(self) > nodes(other)
    }
}

bounded_integer! {
    /// Length of a plan's free trial in days; 0 for none.
    TrialDays, 0 ..= 730, "from 0 to 730"
}

bounded_integer! {
    /// A plan's rank among the tenant's plans; higher tiers include more.
    Tier, 0 ..= 1_000, "from 0 to 1000"
}

/// Product variants at the payment provider: at most 100, each a single line of at most 255
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variants(Vec<SingleLine<255>>);

impl Variants {
    /// Maximum number of variants.
    pub const MAX: usize = 100;

    /// Creates the list, or returns an error if it is too long.
    pub fn new(items: Vec<SingleLine<255>>) -> Result<Self, ValidationError> {
        if items.len() > Self::MAX {
            let message = format!("must have at most {} items, not {}", Self::MAX, items.len());
            return Err(ValidationError::new(Rule::TooMany, message));
        }
        Ok(Self(items))
    }

    /// Returns the variants in their original order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(SingleLine::as_str)
    }
}

/// A comma-separated list of features in one string of at most 5,000 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features(MultiLine<5_000>);

impl Features {
    /// Returns the original string.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the items, trimmed and without empty ones.
    pub fn list(&self) -> impl Iterator<Item = &str> {
        self.as_str()
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
    }
}

impl FromStr for Features {
    type Err = ValidationError;

    fn from_str(text: &str) -> Result<Self, ValidationError> {
        text.parse().map(Self)
    }
}

/// The fields of a plan that the tenant sets.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanDetails {
    /// Display name.
    pub name: SingleLine<200>,
    /// The name in URLs; never changes.
    pub slug: Slug,
    /// Price of one billing cycle; its currency never changes.
    pub price: Money,
    /// The billing cycle.
    pub billing_cycle: BillingCycle,
    /// Length of the free trial.
    pub trial_days: TrialDays,
    /// The product at the payment provider.
    pub product_id: Option<SingleLine<255>>,
    /// The product's variants at the payment provider.
    pub variants: Variants,
    /// Link to a page about the plan.
    pub href: Option<Href>,
    /// Description for customers.
    pub description: Option<MultiLine<5_000>>,
    /// Number of nodes a subscriber may run.
    pub node_quota: NodeQuota,
    /// The features it includes.
    pub features: Option<Features>,
    /// Whether a pricing page should highlight it.
    pub most_popular: bool,
    /// Rank among the tenant's plans.
    pub tier: Tier,
    /// Whether new subscriptions are allowed.
    pub is_active: bool,
    /// Pairs that the client attached.
    pub metadata: Metadata,
}

impl PlanDetails {
    /// Creates the details of an active plan with defaults for all optional fields.
    pub fn new(
        name: SingleLine<200>,
        slug: Slug,
        price: Money,
        billing_cycle: BillingCycle,
    ) -> Self {
        Self {
            name,
            slug,
            price,
            billing_cycle,
            trial_days: TrialDays::default(),
            product_id: None,
            variants: Variants::default(),
            href: None,
            description: None,
            node_quota: NodeQuota::default(),
            features: None,
            most_popular: false,
            tier: Tier::default(),
            is_active: true,
            metadata: Metadata::default(),
        }
    }
}

/// A plan as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The identifier.
    pub id: PlanId,
    /// The fields that the tenant sets.
    pub details: PlanDetails,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

impl Plan {
    /// Creates a plan at `now`.
    pub fn create(details: PlanDetails, id: PlanId, now: Timestamp) -> Self {
        Self {
            id,
            details,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the plan with these details, updated at `now`, or `None` if nothing changes. The caller
    /// must not change the slug or the currency.
    pub fn update(&self, details: PlanDetails, now: Timestamp) -> Option<Self> {
        (details != self.details).then(|| Self {
            details,
            updated_at: now,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_accepts_only_allowed_characters() {
        for good in ["a", "Pro", "pro-2.1_x", "9", &"x".repeat(64)] {
            assert_eq!(good.parse::<Slug>().unwrap().as_str(), good);
        }
        for bad in [
            "", ".", "..", ".a", "-a", "_a", "a b", "a/b", "a%2fb", "ä", "ａ", "a\0", "a\n", "a'b",
            "a\\b", "?", "#", "*",
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
    fn features_keep_the_original_and_list_trimmed_items() {
        let features: Features = " a,, b ,\tc,".parse().unwrap();
        assert_eq!(features.as_str(), " a,, b ,\tc,");
        assert_eq!(features.list().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn quota_and_tier_reject_values_out_of_range() {
        assert_eq!(NodeQuota::try_from(-1).unwrap().get(), -1);
        assert!(NodeQuota::try_from(-2).is_err());
        assert!(NodeQuota::try_from(2_147_483_647).is_ok());
        assert!(NodeQuota::try_from(2_147_483_648).is_err());
        assert!(Tier::try_from(1_001).is_err());
    }
}
