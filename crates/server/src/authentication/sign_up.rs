//! `POST /authentication/sign-up`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{EventKind, User};
use serde_json::json;

use super::{
    credentials::{Credentials, CredentialsBody, Proven},
    open::{Device, open},
    view::TokensView,
};
use crate::{
    app::App,
    callers::{Caller, SignIn},
    db::Transaction,
    events,
    http::{
        answer::Private,
        json::Fields,
        problem::{AnyEndpoint, Code, Problem, ProblemBody, WithBody},
    },
    users::{email_in_use, table},
};

/// Sign up
///
/// Makes an account for the user that the identity provider's token proves, and signs it in. `email` must be the
/// address that the provider has verified. An account that a server made ahead of time for that address is taken
/// over.
#[utoipa::path(
    post,
    path = "/authentication/sign-up",
    tag = "Authentication",
    operation_id = "signUp",
    request_body(content = CredentialsBody, description = "The provider's token, and for whom it is."),
    responses(
        (status = 201, description = "The tokens of the first session.", body = TokensView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        (status = 409, description = "The user has an account already (`account_exists`), or another account has the e-mail address (`email_in_use`).", body = ProblemBody,
            content_type = "application/problem+json"),
        AnyEndpoint,
        WithBody,
    ),
)]
pub async fn sign_up(
    State(app): State<Arc<App>>,
    caller: Caller<SignIn>,
    device: Device,
    fields: Fields,
) -> Result<Private<TokensView>, Problem> {
    let proven = Credentials::parse(fields)?.prove(&app, &caller).await?;
    let tenant = caller.tenant();
    let mut connection = app.engine_of(tenant)?.connection().await?;
    let tx = connection.begin();
    let now = app.clock.now();
    let user = account(&app, &tx, &caller, &proven, now).await?;
    let issuer = proven.issuer;
    let (session, salt) = open(&app, &tx, &caller, device, &user, issuer, now).await?;
    // Before it lasts: an account whose tokens could not be made would be there, and nobody signed in.
    let tokens = TokensView::of(&app, tenant, &session, &user, &salt, now).await?;
    tx.commit().await?;
    Ok(Private(StatusCode::CREATED, tokens))
}

/// An account for this identity: a new one, or one that was made ahead of time for its e-mail address. The unique
/// keys of both tables decide between several who come at once.
async fn account(
    app: &App,
    tx: &Transaction<'_>,
    caller: &Caller<SignIn>,
    proven: &Proven,
    now: Timestamp,
) -> Result<User, Problem> {
    let tenant = caller.tenant().id;
    let Proven {
        issuer,
        subject,
        email,
    } = proven;
    let new = User {
        id: app.ids.next(now),
        email: email.clone(),
        created_at: now,
    };
    let (user, kind) = if table::insert(tx, tenant, &new).await? {
        (new, EventKind::UserCreated)
    } else {
        let found = table::lock_by_email(tx, tenant, email).await?;
        if table::is_bound(tx, tenant, issuer, subject).await? {
            return Err(account_exists());
        }
        match found {
            Some((user, false)) => (user, EventKind::UserClaimed),
            _ => return Err(email_in_use()),
        }
    };
    if !table::bind(tx, tenant, user.id, issuer, subject, now).await? {
        return Err(account_exists());
    }
    let data = json!({"id": user.id.to_string(), "issuer": issuer});
    let event = caller.event(app.ids, now, kind, user.id, &data);
    events::record(tx, &event).await?;
    Ok(user)
}

fn account_exists() -> Problem {
    let detail = "this user has an account already; sign in instead";
    Problem::new(Code::AccountExists, detail)
}
