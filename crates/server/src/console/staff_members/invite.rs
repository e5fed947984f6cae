//! `POST /staff`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use perennial_domain::{Email, StaffRole};

use super::{
    body::{InviteStaffMember, parse_invite},
    change,
    view::{InvitedStaffMember, StaffMemberView},
};
use crate::{
    app::App,
    auth::{
        Caller, StaffWrite,
        staff::{self, NewStaffMember, StaffMember, table},
    },
    db::Transaction,
    http::{
        idempotency::{IdempotencyKey, IdempotencyOutcome},
        json::BodyFields,
        openapi::IdempotencyKeyParam,
        problem::{BodyResponses, Code, CommonResponses, Problem, ProblemBody},
        response::add_field,
    },
};

/// Invite a staff member
///
/// Creates a staff member of this tenant, and a link that signs the member in, once and within 10 minutes. Send the link to
/// the person. A member who has not signed in yet can be invited again, with the same or another role.
#[utoipa::path(
    post,
    path = "/staff",
    tag = "Console",
    operation_id = "inviteStaffMember",
    params(IdempotencyKeyParam),
    request_body(content = InviteStaffMember, description = "The person to invite."),
    responses(
        (status = 201, description = "The staff member, with the sign-in link.", body = InvitedStaffMember),
        (status = 409, description = "The person is a staff member already and has signed in (`email_in_use`), or a request with \
            the same key is in progress (`idempotency_in_progress`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn invite(
    State(app): State<Arc<App>>,
    caller: Caller<StaffWrite>,
    idempotency_key: IdempotencyKey,
    fields: BodyFields,
) -> Result<Response, Problem> {
    let fingerprint = fields.fingerprint();
    let (email, role) = parse_invite(fields)?;
    let mut home = app.db.home()?.connection().await?;
    let scope = caller.idempotency_scope();
    let tx = match idempotency_key
        .begin(&mut home, &scope, fingerprint)
        .await?
    {
        // Only its hash is stored, so the link cannot be repeated.
        IdempotencyOutcome::Replayed(response) => {
            return add_field(response, "link", &None::<String>).await;
        }
        IdempotencyOutcome::Proceed(tx) => tx,
    };
    let (created, link) = match create_member(&tx, &app, &caller, &email, role).await {
        Ok((member, link)) => {
            let location = format!("/staff/{}", member.id);
            (Ok((location, StaffMemberView::from(&member))), Some(link))
        }
        Err(problem) => (Err(problem), None),
    };
    let response = tx.respond(created).await?;
    add_field(response, "link", &link).await
}

/// Creates the member and a link. The caller commits.
async fn create_member(
    tx: &Transaction<'_>,
    app: &App,
    caller: &Caller<StaffWrite>,
    email: &Email,
    role: StaffRole,
) -> Result<(StaffMember, String), Problem> {
    let tenant = caller.tenant().id;
    let existing = table::lock_by_email(tx, Some(tenant), email).await?;
    if existing.is_some_and(|member| member.last_signed_in_at.is_some()) {
        let detail = "a staff member with this email address has already signed in";
        return Err(Problem::new(Code::EmailInUse, detail));
    }
    let change = change(app, caller);
    let new = NewStaffMember {
        tenant: Some(tenant),
        email: Some(email),
        role,
        is_by_group: false,
    };
    let member = staff::ensure_member(tx, &change, new).await?;
    let secret = staff::create_link(tx, member.id, change.now).await?;
    Ok((member, staff::link_url(&app.console.url, &secret)))
}
