//! `POST /authentication/sign-up`

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use jiff::Timestamp;
use perennial_domain::{EventKind, SessionUser, User};
use serde_json::json;

use super::{
    create_session::{Device, create_session},
    credentials::{Credentials, CredentialsBody, VerifiedIdentity},
    view::TokensView,
};
use crate::{
    app::App,
    auth::{Caller, SignIn},
    db::Transaction,
    events,
    http::{
        json::BodyFields,
        openapi::ForwardedForParam,
        problem::{BodyResponses, Code, CommonResponses, Problem, ProblemBody},
        response::NoStore,
    },
    users::{email_in_use, identities_sql, lock_sql, table},
};

/// Sign up
///
/// Creates an account for the user that the identity provider's token identifies, and a session. `email` must be the
/// address that the provider has verified. If a server has already created a user with that address, the user signs up
/// to that account.
#[utoipa::path(
    post,
    path = "/authentication/sign-up",
    tag = "Authentication",
    operation_id = "signUp",
    params(ForwardedForParam),
    request_body(content = CredentialsBody, description = "The identity provider's token and the user's email address."),
    responses(
        (status = 201, description = "The tokens of the first session.", body = TokensView,
            headers(
                ("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."),
                ("Location" = String, description = "The path of the created record.")
            )),
        (status = 409, description = "The user already has an account (`account_exists`), or another account has the email address (`email_in_use`).", body = ProblemBody,
            content_type = "application/problem+json"),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn sign_up(
    State(app): State<Arc<App>>,
    caller: Caller<SignIn>,
    device: Device,
    fields: BodyFields,
) -> Result<impl IntoResponse, Problem> {
    let identity = Credentials::parse(fields)?
        .authenticate(&app, &caller)
        .await?;
    let tenant = caller.tenant();
    let mut connection = app.database_for(tenant)?.connection().await?;
    let tx = connection.begin();
    let now = app.clock.now();
    let user = create_account(&app, &tx, &caller, &identity, now).await?;
    let user = SessionUser::from(user);
    let (session, salt) = create_session(&app, &tx, &caller, device, &user, identity, now).await?;
    // Issued before the commit, so that a failure leaves no account.
    let tokens = TokensView::issue(&app, tenant, &session, &user, &salt, now).await?;
    tx.commit().await?;
    let location = format!("/users/{}", user.id);
    let location = HeaderValue::try_from(location).map_err(|error| Problem::internal(&error))?;
    let tokens = NoStore(StatusCode::CREATED, tokens);
    Ok(([(header::LOCATION, location)], tokens))
}

/// Creates an account for the identity, or claims one that a server created for its email address.
/// Unique indexes resolve races between concurrent requests.
async fn create_account(
    app: &App,
    tx: &Transaction<'_>,
    caller: &Caller<SignIn>,
    identity: &VerifiedIdentity,
    now: Timestamp,
) -> Result<User, Problem> {
    let tenant = caller.tenant().id;
    let VerifiedIdentity {
        issuer,
        subject,
        email,
        ..
    } = identity;
    let email = match email.email() {
        Ok(email) => email,
        Err(invalid) => {
            if identities_sql::identity_exists(tx, tenant, issuer, subject).await? {
                return Err(account_exists());
            }
            return Err(Problem::from_field_errors(vec![("email", invalid.clone())]));
        }
    };
    let new = User::with_email(email.clone(), app.ids.generate(now), now);
    let (user, kind) = if table::insert(tx, tenant, &new).await? {
        (new, EventKind::UserCreated)
    } else {
        let existing = lock_sql::lock_by_email(tx, tenant, email).await?;
        if identities_sql::identity_exists(tx, tenant, issuer, subject).await? {
            return Err(account_exists());
        }
        match existing {
            Some((user, false)) => (user, EventKind::UserClaimed),
            _ => return Err(email_in_use()),
        }
    };
    if !identities_sql::insert_identity(tx, tenant, user.id, issuer, subject, now).await? {
        return Err(account_exists());
    }
    let data = json!({"id": user.id.to_string(), "issuer": issuer});
    let event = caller.event(app.ids, now, kind, user.id, &data);
    events::record(tx, &event).await?;
    Ok(user)
}

fn account_exists() -> Problem {
    let detail = "this user already has an account; sign in instead";
    Problem::new(Code::AccountExists, detail)
}
