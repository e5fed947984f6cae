//! The JSON representation of a staff member's session.

use jiff::Timestamp;
use perennial_domain::{Scope, StaffId, TenantId};
use serde::Serialize;
use utoipa::{ToSchema, openapi::Ref};

use crate::{
    app::App,
    auth::{
        Tenant,
        staff::{StaffMember, StaffSession},
        tenants,
    },
    db::PooledConnection,
    http::{
        problem::Problem,
        response::{display, timestamp},
        schema::named,
    },
};

/// The session of a staff member.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConsoleSession)]
pub struct ConsoleSessionView {
    staff_member: SignedInStaffView,
    /// The tenant whose data the session shows.
    tenant: TenantNameView,
    /// The tenants that the member can switch to, oldest first.
    tenants: Vec<TenantNameView>,
    /// `sandbox` or `live`.
    #[schema(example = "sandbox")]
    mode: &'static str,
    /// The time of the service's clock, which can be ahead in a sandbox.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    now: Timestamp,
    /// When the session ends at the latest. It ends earlier after an hour without a request.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T21:30:00.000000Z")]
    pub(super) expires_at: Timestamp,
    /// The version of the service.
    #[schema(example = "0.1.0")]
    version: &'static str,
}

/// The staff member who is signed in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SignedInStaffMember)]
pub struct SignedInStaffView {
    /// The member's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "stf_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: StaffId,
    /// The member's email address; null if the sign-in link was created without one.
    #[schema(required, example = "ada@example.com")]
    email: Option<String>,
    #[schema(schema_with = role)]
    role: &'static str,
    /// What the member may do.
    #[schema(example = json!(["users:read", "subscriptions:read"]))]
    scopes: Vec<&'static str>,
}

/// A tenant and its name.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = TenantName)]
pub struct TenantNameView {
    /// The tenant's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "ten_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: TenantId,
    /// The tenant's name.
    #[schema(example = "default")]
    name: String,
}

fn role() -> Ref {
    named::STAFF_ROLE.reference("The member's role.")
}

impl ConsoleSessionView {
    /// Returns the view of a session that shows this tenant, or `None` if the member cannot work with it.
    pub(super) async fn load(
        app: &App,
        home: &PooledConnection,
        session: &StaffSession,
        tenant: TenantId,
    ) -> Result<Option<Self>, Problem> {
        let tenants = tenants::table::list(home).await?;
        let tenants: Vec<TenantNameView> = { tenants.into_iter() }
            .filter(|(tenant, _)| may_use(&session.member, tenant))
            .map(|(tenant, name)| TenantNameView {
                id: tenant.id,
                name,
            })
            .collect();
        let Some(current) = tenants.iter().find(|listed| listed.id == tenant).cloned() else {
            return Ok(None);
        };
        let StaffMember {
            id, email, role, ..
        } = &session.member;
        Ok(Some(Self {
            staff_member: SignedInStaffView {
                id: *id,
                email: email.clone(),
                role: role.as_str(),
                scopes: role.scopes().iter().copied().map(Scope::as_str).collect(),
            },
            tenant: current,
            tenants,
            mode: app.mode.as_str(),
            now: app.billing_clock.now(),
            expires_at: session.expires_at,
            version: env!("CARGO_PKG_VERSION"),
        }))
    }
}

fn may_use(member: &StaffMember, tenant: &Tenant) -> bool {
    member.tenant.is_none_or(|own| own == tenant.id)
}
