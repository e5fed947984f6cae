//! `POST /authentication/sign-in`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{Email, EventKind, User};
use serde_json::json;

use super::{
    credentials::{Credentials, CredentialsBody},
    open::{Device, no_account, open},
    view::TokensView,
};
use crate::{
    app::App,
    callers::{Caller, SignIn, sessions},
    db::Connection,
    events,
    http::{
        answer::Private,
        json::Fields,
        problem::{AnyEndpoint, Problem, ProblemBody, WithBody},
    },
    users::table,
};

/// Sign in
///
/// Begins a session for the user that the identity provider's token proves. `email` must be the address that the
/// provider has verified; if it has changed there, it changes here too, unless another account has it.
#[utoipa::path(
    post,
    path = "/authentication/sign-in",
    tag = "Authentication",
    operation_id = "signIn",
    request_body(content = CredentialsBody, description = "The provider's token, and for whom it is."),
    responses(
        (status = 200, description = "The tokens of a new session.", body = TokensView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        (status = 404, description = "Nobody has signed up with this identity (`account_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        WithBody,
    ),
)]
pub async fn sign_in(
    State(app): State<Arc<App>>,
    caller: Caller<SignIn>,
    device: Device,
    fields: Fields,
) -> Result<Private<TokensView>, Problem> {
    let proven = Credentials::parse(fields)?.prove(&app, &caller).await?;
    let tenant = caller.tenant();
    let engine = app.engine_of(tenant)?;
    let (issuer, subject) = (&proven.issuer, &proven.subject);
    let found = table::find_by_identity(engine, tenant.id, issuer, subject).await?;
    let mut user = found.ok_or_else(no_account)?;
    let mut connection = engine.connection().await?;
    let now = app.clock.now();
    if !user.email.is_same(&proven.email) {
        take_over(
            &app,
            &mut connection,
            &caller,
            &mut user,
            &proven.email,
            now,
        )
        .await?;
    }
    let tx = connection.begin();
    let issuer = proven.issuer;
    let (session, salt) = open(&app, &tx, &caller, device, &user, issuer, now).await?;
    let tokens = TokensView::of(&app, tenant, &session, &user, &salt, now).await?;
    tx.commit().await?;
    Ok(Private(StatusCode::OK, tokens))
}

/// The user has another e-mail address at the provider now; unless it is another account's, it is taken over.
async fn take_over(
    app: &App,
    connection: &mut Connection,
    caller: &Caller<SignIn>,
    user: &mut User,
    email: &Email,
    now: Timestamp,
) -> Result<(), Problem> {
    let tenant = caller.tenant();
    let tx = connection.begin();
    match table::change_email(&tx, tenant.id, user.id, email).await {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(error) if error.constraint() == Some(table::EMAIL_UNIQUE) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let sessions = sessions::table::tell_of_user(&tx, tenant.id, user.id).await?;
    let data = json!({"id": user.id.to_string()});
    let kind = EventKind::UserEmailChanged;
    let event = caller.event(app.ids, now, kind, user.id, &data);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    app.bearers.sessions.forget(tenant, &sessions);
    user.email = email.clone();
    Ok(())
}
