//! The JSON representation of a staff member.

use jiff::Timestamp;
use perennial_domain::StaffId;
use serde::Serialize;
use utoipa::{ToSchema, openapi::Ref};

use crate::{
    auth::staff::StaffMember,
    http::{
        response::{display, timestamp, timestamp_or_null},
        schema::named,
    },
};

/// Computed fields of responses, which requests may contain. They are ignored.
pub const COMPUTED: &[&str] = &["all_tenants", "updated_at", "last_signed_in_at", "link"];

/// A staff member.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StaffMember)]
pub struct StaffMemberView {
    /// The member's id.
    #[serde(serialize_with = "display")]
    #[schema(value_type = String, example = "stf_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: StaffId,
    /// The member's email address; null if the sign-in link was created without one.
    #[schema(required, example = "ada@example.com")]
    email: Option<String>,
    #[schema(schema_with = role)]
    role: &'static str,
    /// Whether the member can work with all tenants. Such a member can only be changed with `perennial staff`.
    #[schema(example = false)]
    all_tenants: bool,
    /// When the member was invited.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: Timestamp,
    /// Time of the last change.
    #[serde(serialize_with = "timestamp")]
    #[schema(value_type = String, format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    updated_at: Timestamp,
    /// When the member last signed in; null before the first time.
    #[serde(serialize_with = "timestamp_or_null")]
    #[schema(value_type = Option<String>, required, format = DateTime, example = json!(null))]
    last_signed_in_at: Option<Timestamp>,
}

/// The staff members of a tenant.
#[derive(Debug, Serialize, ToSchema)]
pub struct StaffList {
    /// All members, oldest first.
    pub data: Vec<StaffMemberView>,
}

/// An invited staff member.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the response that `invite` assembles")]
pub struct InvitedStaffMember {
    #[serde(flatten)]
    #[schema(inline = false)]
    pub member: StaffMemberView,
    /// The link that signs the member in, once and within 10 minutes. Null in the response to a retry.
    #[schema(
        required,
        example = "https://billing.example.com/console/#link=MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo"
    )]
    pub link: Option<String>,
}

fn role() -> Ref {
    named::STAFF_ROLE.reference("What the member may see and do.")
}

impl From<&StaffMember> for StaffMemberView {
    fn from(member: &StaffMember) -> Self {
        Self {
            id: member.id,
            email: member.email.clone(),
            role: member.role.as_str(),
            all_tenants: member.tenant.is_none(),
            created_at: member.created_at,
            updated_at: member.updated_at,
            last_signed_in_at: member.last_signed_in_at,
        }
    }
}
