//! The JSON representation of entitlements.

use std::sync::Arc;

use jiff::Timestamp;
use perennial_domain::{Entitlements, Features, PlanId, SubscriptionId, UserId};
use serde::{Serialize, Serializer};
use utoipa::{ToSchema, openapi::Ref};

use super::table::{GrantingPlan, GrantingSubscription, UserAccess};
use crate::http::{
    response::{display, timestamp_or_null},
    schema::named,
};

/// What a user may do now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Entitlements)]
pub struct EntitlementsView {
    /// The user.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    user_id: UserId,
    /// Whether the user has access to anything.
    #[schema(example = true)]
    active: bool,
    /// The highest tier; 0 without access.
    #[schema(example = 2)]
    tier: i32,
    /// How many nodes the user may run; -1 for unlimited, 0 without access.
    #[schema(example = 25)]
    node_quota: i32,
    /// The features of all plans, without duplicates.
    #[schema(example = json!(["SSO", "Audit log"]))]
    features: Vec<String>,
    /// When the last access ends; null if it has no end, or without access.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    until: Option<Timestamp>,
    /// The subscriptions with access, oldest first.
    subscriptions: Vec<GrantView>,
}

/// A subscription with access.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantView {
    /// The subscription.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: SubscriptionId,
    /// The plan.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: PlanId,
    // The field holds the plan, so that the slug is serialized without a copy.
    /// The plan's slug.
    #[serde(serialize_with = "slug")]
    #[schema(value_type = String, example = "pro")]
    slug: Arc<GrantingPlan>,
    #[schema(schema_with = status_schema)]
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
    /// When the subscription renews.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = "2026-12-15T09:30:00.000000Z")]
    renews_at: Option<Timestamp>,
    /// When the subscription ends.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    ends_at: Option<Timestamp>,
}

fn slug<S: Serializer>(plan: &Arc<GrantingPlan>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(plan.slug.as_str())
}

fn features<S: Serializer>(plan: &Arc<GrantingPlan>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(plan.grant.features.iter().flat_map(Features::list))
}

fn status_schema() -> Ref {
    named::SUBSCRIPTION_STATUS.reference("The status of the subscription: one that gives access.")
}

impl EntitlementsView {
    pub(super) fn new(user: UserId, access: UserAccess) -> Self {
        let UserAccess {
            plans,
            subscriptions,
        } = access;
        let ends = subscriptions
            .iter()
            .map(|subscription| subscription.ends_at);
        let combined = Entitlements::combine(plans.iter().map(|plan| &plan.grant), ends);
        Self {
            user_id: user,
            active: combined.active,
            tier: combined.tier.get(),
            node_quota: combined.node_quota.get(),
            features: combined.features,
            until: combined.until,
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
