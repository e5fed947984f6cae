//! Entitlements as we return them.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{Entitlements, Features, PlanId, Status, SubscriptionId, UserId};
use serde::{Serialize, Serializer};
use utoipa::{ToSchema, openapi::schema::Object};

use super::table::{Granted, GrantingPlan, GrantingSubscription};
use crate::http::{
    answer::{shown, shown_or_null},
    schema::words,
};

/// What a user may do now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Entitlements, example = json!({
    "user_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "active": true,
    "tier": 2,
    "node_quota": 25,
    "features": ["SSO", "Audit log"],
    "until": null,
    "subscriptions": [{
        "id": "sub_0192f0c1a2b37c4d8e5f60718293a4b5",
        "subscription_plan_id": "plan_0192f0c1a2b37c4d8e5f60718293a4b5",
        "slug": "pro",
        "status": "active",
        "tier": 2,
        "node_quota": 25,
        "features": ["SSO", "Audit log"],
        "renews_at": "2026-12-15T09:30:00Z",
        "ends_at": null
    }]
}))]
pub struct EntitlementsView {
    /// The user.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    user_id: UserId,
    /// Whether there is any access.
    #[schema(example = true)]
    active: bool,
    /// The highest tier; 0 without access.
    #[schema(example = 2)]
    tier: i32,
    /// How many nodes the user may run; -1 is unlimited, 0 without access.
    #[schema(example = 25)]
    node_quota: i32,
    /// All features together, each once.
    #[schema(example = json!(["SSO", "Audit log"]))]
    features: Vec<String>,
    /// When the last of it ends; null if it does not end by itself, or without access.
    #[serde(serialize_with = "shown_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    until: Option<Timestamp>,
    /// What gives it, oldest first.
    subscriptions: Vec<GrantView>,
}

/// A subscription that gives access.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantView {
    /// The subscription.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: SubscriptionId,
    /// The plan.
    #[serde(serialize_with = "shown")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    /// The plan's slug.
    #[serde(serialize_with = "slug")]
    #[schema(value_type = String, example = "pro")]
    slug: Arc<GrantingPlan>,
    #[schema(schema_with = status)]
    status: &'static str,
    /// The plan's tier.
    #[schema(example = 2)]
    tier: i32,
    /// The plan's quota.
    #[schema(example = 25)]
    node_quota: i32,
    /// The plan's features.
    #[serde(serialize_with = "features")]
    #[schema(value_type = Vec<String>, example = json!(["SSO", "Audit log"]))]
    features: Arc<GrantingPlan>,
    /// When it is paid for next.
    #[serde(serialize_with = "shown_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00Z")]
    renews_at: Option<Timestamp>,
    /// When it ends.
    #[serde(serialize_with = "shown_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    ends_at: Option<Timestamp>,
}

fn slug<S: Serializer>(plan: &Arc<GrantingPlan>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(plan.slug.as_str())
}

fn features<S: Serializer>(plan: &Arc<GrantingPlan>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(plan.grant.features.iter().flat_map(Features::list))
}

fn status() -> Object {
    let giving = Status::ALL.iter().filter(|status| status.gives_access());
    let giving: Vec<&str> = giving.map(|status| status.as_str()).collect();
    words("Where it stands.", &giving)
}

impl EntitlementsView {
    pub(super) fn of(user: UserId, granted: Granted) -> Self {
        let Granted {
            plans,
            subscriptions,
        } = granted;
        let ends = subscriptions.iter().map(|one| one.ends_at);
        let all = Entitlements::of(plans.iter().map(|plan| &plan.grant), ends);
        Self {
            user_id: user,
            active: all.active,
            tier: all.tier.get(),
            node_quota: all.node_quota.get(),
            features: all.features,
            until: all.until,
            subscriptions: subscriptions.into_iter().map(GrantView::from).collect(),
        }
    }
}

impl From<GrantingSubscription> for GrantView {
    fn from(subscription: GrantingSubscription) -> Self {
        let plan = subscription.plan;
        Self {
            id: subscription.id,
            subscription_plan_id: plan.id,
            slug: plan.clone(),
            status: subscription.status.as_str(),
            tier: plan.grant.tier.get(),
            node_quota: plan.grant.node_quota.get(),
            features: plan,
            renews_at: subscription.renews_at,
            ends_at: subscription.ends_at,
        }
    }
}
