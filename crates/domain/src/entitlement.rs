//! Entitlements: what a user may do, combined over all subscriptions with access.
//!
//! A user can have several subscriptions. The combination has the highest tier and quota, all
//! features, and the latest end.

use jiff::Timestamp;

use crate::{Features, NodeQuota, Tier};

/// What a plan gives its subscribers.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// The rank of the plan.
    pub tier: Tier,
    /// How many nodes the subscriber may run.
    pub node_quota: NodeQuota,
    /// The included features.
    pub features: Option<Features>,
}

/// What a user may do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entitlements {
    /// Whether the user has access to anything.
    pub active: bool,
    /// The highest tier; 0 without access.
    pub tier: Tier,
    /// The highest quota; 0 without access.
    pub node_quota: NodeQuota,
    /// All features without duplicates, in order of first appearance.
    pub features: Vec<String>,
    /// The latest end of access; `None` if any subscription has no end, or without access.
    pub until: Option<Timestamp>,
}

impl Entitlements {
    /// Combines the grants of a user's plans, and the `ends_at` of each subscription with access.
    pub fn combine<'a>(
        grants: impl IntoIterator<Item = &'a Grant>,
        ends: impl IntoIterator<Item = Option<Timestamp>>,
    ) -> Self {
        let mut combined = Self::default();
        for grant in grants {
            combined.active = true;
            if grant.tier.get() > combined.tier.get() {
                combined.tier = grant.tier;
            }
            if grant.node_quota.exceeds(combined.node_quota) {
                combined.node_quota = grant.node_quota;
            }
            for feature in grant.features.iter().flat_map(Features::list) {
                if !combined.features.iter().any(|known| known == feature) {
                    combined.features.push(feature.to_owned());
                }
            }
        }
        // Collecting into an `Option` yields `None` if any subscription has no end.
        let ends: Option<Vec<Timestamp>> = ends.into_iter().collect();
        combined.until = ends.and_then(|ends| ends.into_iter().max());
        combined
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
    fn combine_without_grants_returns_default() {
        assert_eq!(Entitlements::combine([], []), Entitlements::default());
    }

    #[test]
    fn combine_takes_maximums_and_all_features() {
        let grants = [
            grant(2, 5, "SSO, Audit log"),
            grant(1, 25, "Audit log,,API"),
        ];
        let combined = Entitlements::combine(&grants, ends([20, 10, 10]));
        assert_eq!((combined.tier.get(), combined.node_quota.get()), (2, 25));
        assert_eq!(combined.features, ["SSO", "Audit log", "API"]);
        assert_eq!(combined.until, Timestamp::from_second(20).ok());
    }

    #[test]
    fn combine_treats_unlimited_quota_and_missing_end_as_maximum() {
        let limited = grant(0, 2_147_483_647, "");
        let unlimited = grant(0, -1, "");
        for grants in [[limited.clone(), unlimited.clone()], [unlimited, limited]] {
            let [end] = ends([10]);
            let combined = Entitlements::combine(&grants, [end, None]);
            assert_eq!((combined.node_quota.get(), combined.until), (-1, None));
            assert!(combined.active);
        }
    }
}
