//! `PUT /console/session`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use perennial_domain::TenantId;

use super::{WithCookie, view::ConsoleSessionView, with_cookie};
use crate::{
    app::App,
    auth::staff::{self, StaffCaller, StaffSession},
    http::{
        json::{BodyFields, text},
        problem::{BodyResponses, Code, CommonResponses, Problem, ProblemFieldError},
        request_schema::{RequestField, request_body},
        response::NoStore,
        schema::named,
    },
};

const FIELDS: &[RequestField] = &[RequestField::required("tenant_id", || {
    named::TENANT_ID
        .reference("The tenant to work with.")
        .into()
})];

request_body!(
    UpdateConsoleSession,
    create_schema(FIELDS, &[]),
    "The tenant to work with.",
    {"tenant_id": "ten_0192f0c1a2b37c4d8e5f60718293a4b5"}
);

/// Switch the tenant of the console
///
/// Changes the tenant whose data the session shows, for a staff member of all tenants. The session gets a new cookie; the old
/// one ends.
#[utoipa::path(
    put,
    path = "/console/session",
    tag = "Console",
    operation_id = "updateConsoleSession",
    security(("console-session" = [])),
    request_body(content = UpdateConsoleSession, description = "The tenant to work with."),
    responses(
        (status = 200, description = "The session. The header `Set-Cookie` has its new cookie.", body = ConsoleSessionView),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn switch_tenant(
    State(app): State<Arc<App>>,
    caller: StaffCaller,
    mut fields: BodyFields,
) -> Result<WithCookie<NoStore<ConsoleSessionView>>, Problem> {
    let tenant = fields.required("tenant_id", text::<TenantId>);
    let tenant = fields.finish(|| tenant)?;
    let now = app.clock.now();
    let session: &StaffSession = caller.session();
    let mut home = app.db.home()?.connection().await?;
    let view = ConsoleSessionView::load(&app, &home, session, tenant).await?;
    let view = view.ok_or_else(|| {
        let message = "is not the id of a tenant that you can work with";
        let pointer = "/tenant_id".to_owned();
        let error = ProblemFieldError::new(pointer, Code::UnknownReference, message);
        Problem::fields(vec![error])
    })?;
    let change = caller.change(app.ids, now);
    let secret = staff::switch_tenant(&mut home, &change, session, tenant).await?;
    let secret = secret.ok_or_else(staff::invalid_session)?;
    with_cookie(&secret, now, StatusCode::OK, view)
}
