//! Entitlements: what a user may do, by all that the user has.
//!
//! Somebody may have several subscriptions. Of those that give access now, the highest tier and quota count, all features
//! together, and the latest end.

use jiff::Timestamp;

use crate::{Features, NodeQuota, Tier};

/// What a plan gives to whoever has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// Where the plan stands among the others.
    pub tier: Tier,
    /// How many nodes it lets run.
    pub node_quota: NodeQuota,
    /// What it includes.
    pub features: Option<Features>,
}

/// What a user may do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entitlements {
    /// Whether there is anything.
    pub active: bool,
    /// The highest tier; 0 without any.
    pub tier: Tier,
    /// The highest quota; 0 without any.
    pub node_quota: NodeQuota,
    /// All features, each once, in the order in which they first appear.
    pub features: Vec<String>,
    /// When the last of it ends; `None` if it does not, or if there is nothing.
    pub until: Option<Timestamp>,
}

impl Entitlements {
    /// Of subscriptions that give access: what their plans grant, each named once, and when each of them ends, if it does.
    pub fn of<'a>(
        grants: impl IntoIterator<Item = &'a Grant>,
        ends: impl IntoIterator<Item = Option<Timestamp>>,
    ) -> Self {
        let mut all = Self::default();
        for grant in grants {
            all.active = true;
            if grant.tier.get() > all.tier.get() {
                all.tier = grant.tier;
            }
            if grant.node_quota.exceeds(all.node_quota) {
                all.node_quota = grant.node_quota;
            }
            for feature in grant.features.iter().flat_map(Features::list) {
                if !all.features.iter().any(|known| known == feature) {
                    all.features.push(feature.to_owned());
                }
            }
        }
        // Without an end there is no latest one.
        let ends: Option<Vec<Timestamp>> = ends.into_iter().collect();
        all.until = ends.and_then(|ends| ends.into_iter().max());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(tier: i64, quota: i64, features: &str) -> Grant {
        Grant {
            tier: tier.try_into().unwrap(),
            node_quota: quota.try_into().unwrap(),
            features: Some(features.parse().unwrap()),
        }
    }

    fn ends<const N: usize>(ends: [i64; N]) -> [Option<Timestamp>; N] {
        ends.map(|end| Timestamp::from_second(end).ok())
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Entitlements::of([], []), Entitlements::default());
    }

    #[test]
    fn the_highest_of_each_and_all_features() {
        let grants = [
            grant(2, 5, "SSO, Audit log"),
            grant(1, 25, "Audit log,,API"),
        ];
        let both = Entitlements::of(&grants, ends([20, 10, 10]));
        assert_eq!((both.tier.get(), both.node_quota.get()), (2, 25));
        assert_eq!(both.features, ["SSO", "Audit log", "API"]);
        assert_eq!(both.until, Timestamp::from_second(20).ok());
    }

    #[test]
    fn unlimited_is_more_than_any_number_and_endless_later_than_any_end() {
        let one = grant(0, 2_147_483_647, "");
        let other = grant(0, -1, "");
        for grants in [[one.clone(), other.clone()], [other, one]] {
            let [end] = ends([10]);
            let both = Entitlements::of(&grants, [end, None]);
            assert_eq!((both.node_quota.get(), both.until), (-1, None));
            assert!(both.active);
        }
    }
}
