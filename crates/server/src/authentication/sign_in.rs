//! `POST /authentication/sign-in`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{Email, EventKind, SessionUser};
use serde_json::json;

use super::{
    create_session::{Device, account_not_found, create_session},
    credentials::{Credentials, CredentialsBody},
    view::TokensView,
};
use crate::{
    app::App,
    auth::{Caller, SignIn, sessions},
    db::PooledConnection,
    events,
    http::{
        json::BodyFields,
        openapi::ForwardedForParam,
        problem::{BodyResponses, CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
    users::table,
};

/// Sign in
///
/// Creates a session for the user that the identity provider's token identifies. `email` must be the address that the
/// provider has verified. If it differs from the account's address, the account is updated, unless another account has
/// that address.
#[utoipa::path(
    post,
    path = "/authentication/sign-in",
    tag = "Authentication",
    operation_id = "signIn",
    params(ForwardedForParam),
    request_body(content = CredentialsBody, description = "The identity provider's token and the user's email address."),
    responses(
        (status = 200, description = "The tokens of a new session.", body = TokensView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        (status = 404, description = "No account exists for this identity (`account_not_found`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn sign_in(
    State(app): State<Arc<App>>,
    caller: Caller<SignIn>,
    device: Device,
    fields: BodyFields,
) -> Result<NoStore<TokensView>, Problem> {
    let identity = Credentials::parse(fields)?
        .authenticate(&app, &caller)
        .await?;
    let tenant = caller.tenant();
    let database = app.database_for(tenant)?;
    let (issuer, subject) = (&identity.issuer, &identity.subject);
    let user = table::find_by_identity(database, tenant.id, issuer, subject).await?;
    let mut user = SessionUser::from(user.ok_or_else(account_not_found)?);
    let mut connection = database.connection().await?;
    let now = app.clock.now();
    if let Ok(email) = identity.email.email()
        && !{ user.email.as_ref() }.is_some_and(|own| own.same_mailbox(email))
    {
        update_email(&app, &mut connection, &caller, &mut user, email, now).await?;
    }
    let tx = connection.begin();
    let (session, salt) = create_session(&app, &tx, &caller, device, &user, identity, now).await?;
    let tokens = TokensView::issue(&app, tenant, &session, &user, &salt, now).await?;
    tx.commit().await?;
    Ok(NoStore(StatusCode::OK, tokens))
}

/// Changes the user's email address to the one that the provider has verified, unless another account
/// has it.
async fn update_email(
    app: &App,
    connection: &mut PooledConnection,
    caller: &Caller<SignIn>,
    user: &mut SessionUser,
    email: &Email,
    now: Timestamp,
) -> Result<(), Problem> {
    let tenant = caller.tenant();
    let tx = connection.begin();
    match table::change_email(&tx, tenant.id, user.id, email, now).await {
        Ok(true) => {}
        // Another account has the address, or the user was erased.
        Ok(false) => return Ok(()),
        Err(error) if error.constraint() == Some(table::EMAIL_UNIQUE) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let sessions = sessions::table::notify_user_changed(&tx, tenant.id, user.id).await?;
    let data = json!({"id": user.id.to_string()});
    let kind = EventKind::UserEmailChanged;
    let event = caller.event(app.ids, now, kind, user.id, &data);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    app.authenticator.sessions.invalidate(tenant, &sessions);
    user.email = Some(email.clone());
    Ok(())
}
