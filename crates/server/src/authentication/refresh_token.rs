//! `POST /authentication/refresh-token`
//!
//! A token that we have not made is refused at once. The current one makes its successor by one compare-and-set on
//! the session's row, so of many who send it at once one is first, and the others find themselves with the
//! token before. What that is worth, or an older one, is the domain's to say ([`Session::refresh`]).

use std::{sync::Arc, time::Instant};

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{Refresh, Session, Word};
use utoipa::ToSchema;

use super::view::TokensView;
use crate::{
    app::App,
    callers::{
        Caller, SignIn,
        sessions::{
            self, Reason,
            table::{self, Found, Named},
        },
        tokens::Presented,
    },
    db::Engine,
    http::{
        answer::Private,
        json::{Fields, text},
        problem::{AnyEndpoint, Code, Problem, WithBody},
    },
};

/// What gets the next tokens.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RefreshToken, example = json!({"refresh_token": "prn_rt_AQGS8MGisz"}))]
#[expect(dead_code, reason = "describes the body; `refresh_token` reads it")]
pub struct RefreshBody {
    /// The refresh token of the newest answer.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]+$",
        example = "prn_rt_AQGS8MGisz"
    )]
    refresh_token: String,
}

/// Refresh the tokens
///
/// Gets the session's next tokens. A refresh token is used once; the one just before the current one gets the same
/// answer again for 30 seconds, or for a day if the current one has not been seen in use, so that neither two tabs
/// nor a lost answer sign anybody out. An older one has been stolen or kept too long, and ends the session.
#[utoipa::path(
    post,
    path = "/authentication/refresh-token",
    tag = "Authentication",
    operation_id = "refreshToken",
    request_body(content = RefreshBody, description = "The refresh token."),
    responses(
        (status = 200, description = "The session's next tokens.", body = TokensView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
        AnyEndpoint,
        WithBody,
    ),
)]
pub async fn refresh_token(
    State(app): State<Arc<App>>,
    caller: Caller<SignIn>,
    mut fields: Fields,
) -> Result<Private<TokensView>, Problem> {
    let token = fields.required("refresh_token", text::<Word<255>>);
    let token = fields.finish(|| token)?;
    let tenant = caller.tenant();
    let (attempts, source) = (&app.bearers.attempts, caller.source());
    attempts.may_send(source)?;
    let presented = Presented::read(token.as_str());
    let made = presented.filter(|presented| app.refresh_key.has_made(presented, tenant.id));
    let Some(presented) = made else {
        attempts.guessed(source);
        return Err(refused());
    };
    attempts.may_use(presented.session, Instant::now())?;
    let engine = app.engine_of(tenant)?;
    let now = app.clock.now();
    let found = match rotate(engine, &caller, &presented, now).await? {
        Some(found) => found,
        None => again(&app, engine, &caller, &presented, now).await?,
    };
    let Found {
        session,
        user,
        salt,
        ..
    } = &found;
    let tokens = TokensView::of(&app, tenant, session, user, salt, now).await?;
    Ok(Private(StatusCode::OK, tokens))
}

/// Makes the next generation, if this one is the current one: one compare-and-set.
async fn rotate(
    engine: &Engine,
    caller: &Caller<SignIn>,
    presented: &Presented,
    now: Timestamp,
) -> Result<Option<Found>, Problem> {
    let current = Named {
        id: presented.session,
        client: caller.client().id,
        salt: presented.salt,
        generation: presented.generation,
    };
    let connection = engine.connection().await?;
    let tenant = caller.tenant().id;
    Ok(table::rotate(&connection, tenant, current, now).await?)
}

/// What is to be done for a token that is not, or not any more, the current one.
async fn again(
    app: &App,
    engine: &Engine,
    caller: &Caller<SignIn>,
    presented: &Presented,
    now: Timestamp,
) -> Result<Found, Problem> {
    let tenant = caller.tenant().id;
    let found = table::find(engine, tenant, presented.session).await?;
    // Only what has ended: a living session cannot be used up.
    let lives = |found: &Found| found.session.lives(found.asked_at);
    if !found.as_ref().is_some_and(lives) {
        let attempts = &app.bearers.attempts;
        attempts.used_after_its_end(presented.session);
    }
    let found = found
        .filter(|found| found.session.client == caller.client().id)
        .ok_or_else(refused)?;
    match found.session.refresh(presented.generation, found.asked_at) {
        Refresh::Repeat => Ok(found),
        Refresh::Reused => {
            end(app, caller, engine, &found.session, now).await?;
            Err(refused())
        }
        Refresh::Refuse => Err(refused()),
        // It was the current one all the time: the database was set back between the two questions.
        Refresh::Rotate => Err(Problem::unavailable(
            "this session cannot be refreshed right now; try again in a moment",
        )),
    }
}

/// Ends a session of which an old token came back.
async fn end(
    app: &App,
    caller: &Caller<SignIn>,
    engine: &Engine,
    session: &Session,
    now: Timestamp,
) -> Result<(), Problem> {
    let tenant = caller.tenant();
    let mut connection = engine.connection().await?;
    let tx = connection.begin();
    let why = (Reason::RefreshTokenReused, &caller.by());
    let ended = sessions::end(&tx, app.ids, tenant.id, &[session.id], why, now).await?;
    tx.commit().await?;
    app.bearers.sessions.forget(tenant, &ended);
    tracing::warn!(session = %session.id, "a refresh token was used again; its session is ended");
    Ok(())
}

/// One body for all that can be wrong with a refresh token.
fn refused() -> Problem {
    let detail = "the refresh token is not accepted; the user signs in again";
    Problem::new(Code::InvalidGrant, detail)
}
