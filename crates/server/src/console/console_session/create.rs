//! `POST /console/session`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use perennial_domain::SingleLine;

use super::{WithCookie, view::ConsoleSessionView, with_cookie};
use crate::{
    app::App,
    auth::staff::{self, Visitor},
    http::{
        json::{BodyFields, text},
        problem::{BodyResponses, Code, Problem, ProblemBody, PublicResponses},
        request_schema::{RequestField, request_body},
        response::NoStore,
        schema,
    },
};

const FIELDS: &[RequestField] = &[RequestField::required("link", || {
    let description = "The secret of a sign-in link: the part after `#link=`.";
    schema::single_line(
        description,
        255,
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo",
    )
    .into()
})];

request_body!(
    CreateConsoleSession,
    create_schema(FIELDS, &[]),
    "The link to sign in with.",
    {"link": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo"}
);

/// Sign in to the console
///
/// Exchanges a sign-in link, once and within 10 minutes, for a session of its staff member, as the cookie
/// `__Host-perennial-console`. The cookie replaces the header `client-id` on every endpoint, within the scopes of the member's
/// role. The session ends 12 hours later, or after an hour without a request.
#[utoipa::path(
    post,
    path = "/console/session",
    tag = "Console",
    operation_id = "createConsoleSession",
    security(()),
    request_body(content = CreateConsoleSession, description = "The link to sign in with."),
    responses(
        (status = 201, description = "The session. The header `Set-Cookie` has its cookie.", body = ConsoleSessionView),
        (status = 401, description = "The link is unknown, used or expired (`invalid_sign_in_link`).", body = ProblemBody,
            content_type = "application/problem+json"),
        (status = 403, description = "A page of another site sent the request (`cross_site_request`).", body = ProblemBody,
            content_type = "application/problem+json"),
        PublicResponses,
        BodyResponses,
    ),
)]
pub async fn create(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    mut fields: BodyFields,
) -> Result<WithCookie<NoStore<ConsoleSessionView>>, Problem> {
    let link = fields.required("link", text::<SingleLine<255>>);
    let link = fields.finish(|| link)?;
    let now = app.clock.now();
    let mut home = app.db.home()?.connection().await?;
    let created = staff::use_link(&mut home, &visitor.change(app.ids, now), link.as_str()).await?;
    let created = created.ok_or_else(|| {
        let detail = "the link is unknown, used or expired; ask for a new one, or run `perennial console link`";
        Problem::new(Code::InvalidSignInLink, detail)
    })?;
    let view = ConsoleSessionView::load(&app, &home, &created.session, created.tenant).await?;
    let view = view.ok_or_else(staff::invalid_session)?;
    with_cookie(&created.secret, now, StatusCode::CREATED, view)
}
