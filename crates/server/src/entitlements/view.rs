//! Entitlements as we return them.

use perennial_domain::{Entitlements, Features, Status, UserId};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use super::table::Granted;
use crate::http::schema::words;

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
    #[schema(example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    user_id: String,
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
    #[schema(required, format = DateTime, example = json!(null))]
    until: Option<String>,
    /// What gives it, oldest first.
    subscriptions: Vec<GrantView>,
}

/// A subscription that gives access.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantView {
    /// The subscription.
    #[schema(example = "sub_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: String,
    /// The plan.
    #[schema(example = "plan_0192f0c1a2b37c4d8e5f60718293a4b5")]
    subscription_plan_id: String,
    /// The plan's slug.
    #[schema(example = "pro")]
    slug: String,
    #[schema(schema_with = status)]
    status: &'static str,
    /// The plan's tier.
    #[schema(example = 2)]
    tier: i32,
    /// The plan's quota.
    #[schema(example = 25)]
    node_quota: i32,
    /// The plan's features.
    #[schema(example = json!(["SSO", "Audit log"]))]
    features: Vec<String>,
    /// When it is paid for next.
    #[schema(required, format = DateTime, example = "2026-12-15T09:30:00Z")]
    renews_at: Option<String>,
    /// When it ends.
    #[schema(required, format = DateTime, example = json!(null))]
    ends_at: Option<String>,
}

fn status() -> Object {
    let giving = Status::ALL.iter().filter(|status| status.gives_access());
    let giving: Vec<&str> = giving.map(|status| status.as_str()).collect();
    words("Where it stands.", &giving)
}

impl EntitlementsView {
    pub(super) fn of(user: UserId, all: &Entitlements, granted: &[Granted]) -> Self {
        Self {
            user_id: user.to_string(),
            active: all.active,
            tier: all.tier.get(),
            node_quota: all.node_quota.get(),
            features: all.features.clone(),
            until: all.until.map(|instant| instant.to_string()),
            subscriptions: granted.iter().map(GrantView::from).collect(),
        }
    }
}

impl From<&Granted> for GrantView {
    fn from(granted: &Granted) -> Self {
        let grant = &granted.grant;
        let features = grant.features.iter().flat_map(Features::list);
        Self {
            id: granted.subscription.to_string(),
            subscription_plan_id: granted.plan.to_string(),
            slug: granted.slug.to_string(),
            status: granted.status.as_str(),
            tier: grant.tier.get(),
            node_quota: grant.node_quota.get(),
            features: features.map(str::to_owned).collect(),
            renews_at: granted.renews_at.map(|instant| instant.to_string()),
            ends_at: grant.ends_at.map(|instant| instant.to_string()),
        }
    }
}
