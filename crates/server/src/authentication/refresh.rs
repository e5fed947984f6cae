//! `POST /authentication/refresh-token`
//!
//! A forged token that names a configured master key is rejected without a database read. The current token is exchanged by one
//! compare-and-set on the session's row, so of concurrent requests one rotates the generation and
//! the others are treated as requests with the previous token. [`Session::refresh_decision`]
//! decides about previous and older tokens.
//!
//! [`Session::refresh_decision`]: perennial_domain::Session::refresh_decision

use std::{sync::Arc, time::Instant};

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{AsciiToken, EventKind, RefreshDecision};
use serde_json::json;
use utoipa::ToSchema;

use super::{revoke_sessions::revoke, view::TokensView};
use crate::{
    app::App,
    auth::{
        Caller, SignIn,
        sessions::{
            RevokeReason, carried_sql,
            refresh_sql::{self, SessionGeneration},
            table::{self, SessionRow},
        },
        tokens::ParsedRefreshToken,
    },
    db::CellDatabase,
    events,
    http::{
        json::{BodyFields, text},
        problem::{BodyResponses, Code, CommonResponses, Problem},
        response::NoStore,
    },
};

/// A refresh token.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RefreshToken, example = json!({"refresh_token": "prn_rt_AQGS8MGisz"}))]
#[expect(dead_code, reason = "describes the body; `refresh_token` parses it")]
pub struct RefreshBody {
    /// The most recent refresh token of the session.
    #[schema(
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]+$",
        example = "prn_rt_AQGS8MGisz"
    )]
    refresh_token: String,
}

/// Refresh tokens
///
/// Returns the session's next access token and refresh token. Each refresh token is used once. The previous one returns
/// the same tokens again for 30 seconds, and once more within 10 minutes if the new tokens have not been used yet, so
/// that concurrent tabs and lost responses don't sign users out. Any other use of an old token revokes the session.
#[utoipa::path(
    post,
    path = "/authentication/refresh-token",
    tag = "Authentication",
    operation_id = "refreshToken",
    request_body(content = RefreshBody, description = "The refresh token."),
    responses(
        (status = 200, description = "The session's next tokens.", body = TokensView,
            headers(("Cache-Control" = String, description = "`no-store`, or how long the response may be cached."))),
        CommonResponses,
        BodyResponses,
    ),
)]
pub async fn refresh_token(
    State(app): State<Arc<App>>,
    caller: Caller<SignIn>,
    mut fields: BodyFields,
) -> Result<NoStore<TokensView>, Problem> {
    let token = fields.required("refresh_token", text::<AsciiToken<255>>);
    let token = fields.finish(|| token)?;
    let tenant = caller.tenant();
    let (rate_limits, source) = (&app.authenticator.rate_limits, caller.source());
    rate_limits.check_invalid_tokens(source)?;
    let database = app.database_for(tenant)?;
    let token = match ParsedRefreshToken::parse(token.as_str()) {
        Some(token) if verify(&app, database, &caller, &token).await? => Some(token),
        _ => None,
    };
    let Some(token) = token else {
        rate_limits.record_invalid_token(source);
        return Err(invalid_grant());
    };
    rate_limits.check_session(token.session, Instant::now())?;
    let now = app.clock.now();
    let row = match rotate(&app, database, &caller, &token, now).await? {
        Some(row) => row,
        None => reissue(&app, database, &caller, &token).await?,
    };
    let tokens = TokensView::issue(&app, tenant, &row.session, &row.user, &row.salt, now).await?;
    Ok(NoStore(StatusCode::OK, tokens))
}

/// Returns whether the token was issued for this tenant: with a configured master key, or with one that
/// was replaced.
async fn verify(
    app: &App,
    database: &CellDatabase,
    caller: &Caller<SignIn>,
    token: &ParsedRefreshToken,
) -> Result<bool, Problem> {
    let tenant = caller.tenant().id;
    if app.refresh_keys.verify(token, tenant) {
        return Ok(true);
    }
    if !app.refresh_keys.is_of_unknown_key(token) {
        return Ok(false);
    }
    // Another instance may accept the token. A response of 401 would sign the user out.
    if app.refresh_keys.0.is_replaced() {
        return Err(Problem::unavailable(
            "the session cannot be refreshed right now; try again later",
        ));
    }
    // A forged token costs a read here. It is needed: a device that slept during a rotation has a token
    // of the replaced master key. Only the digest that `keys rewrap` stored tells it from a forged one,
    // because replaced master keys and their ids are not kept.
    Ok(carried_sql::carries(database, tenant, token.session, &token.digest).await?)
}

/// Starts the next generation if the token's generation is the current one.
async fn rotate(
    app: &App,
    database: &CellDatabase,
    caller: &Caller<SignIn>,
    token: &ParsedRefreshToken,
    now: Timestamp,
) -> Result<Option<SessionRow>, Problem> {
    let current = SessionGeneration {
        client: caller.require_client()?.id,
        token,
        next_key: app.refresh_keys.0.in_use().id,
    };
    let connection = database.connection().await?;
    let tenant = caller.tenant();
    Ok(refresh_sql::rotate(&connection, tenant, current, now).await?)
}

/// Handles a token that is not the current one: returns the session if its tokens can be issued
/// again, or revokes it if the token was reused.
async fn reissue(
    app: &App,
    database: &CellDatabase,
    caller: &Caller<SignIn>,
    token: &ParsedRefreshToken,
) -> Result<SessionRow, Problem> {
    // A second read if a concurrent request changed the session after the first one.
    for _ in 0..2 {
        let row = find(app, database, caller, token).await?;
        let session = &row.session;
        match session.refresh_decision(token.generation, row.read_at) {
            RefreshDecision::Reissue => return Ok(row),
            RefreshDecision::LateReissue => {
                if reissue_late(app, database, caller, &row).await? {
                    return Ok(row);
                }
            }
            RefreshDecision::Revoke => {
                let mut connection = database.connection().await?;
                let reason = RevokeReason::RefreshTokenReused;
                revoke(app, connection.begin(), caller, reason, &[session.id]).await?;
                tracing::warn!(session = %session.id, "refresh token reused; session revoked");
                return Err(invalid_grant());
            }
            RefreshDecision::Reject => return Err(invalid_grant()),
            // `rotate` found another generation: the database was restored between the two reads.
            RefreshDecision::Rotate => break,
        }
    }
    Err(Problem::unavailable(
        "the session cannot be refreshed right now; try again later",
    ))
}

/// Returns the session of a token, active or not, if the caller may refresh it.
async fn find(
    app: &App,
    database: &CellDatabase,
    caller: &Caller<SignIn>,
    token: &ParsedRefreshToken,
) -> Result<SessionRow, Problem> {
    let row = table::find(database, caller.tenant(), token.session).await?;
    // Counted for ended sessions only, so that an active session cannot be locked out.
    let is_active = |row: &SessionRow| row.session.is_active(row.read_at);
    if !row.as_ref().is_some_and(is_active) {
        app.authenticator
            .rate_limits
            .record_ended_session(token.session);
    }
    let client = caller.require_client()?.id;
    let row = row
        .filter(|row| row.session.client == client)
        .ok_or_else(invalid_grant)?;
    let tenant = caller.tenant().id;
    if !row.has_issued(token)
        && !carried_sql::carries(database, tenant, token.session, &token.digest).await?
    {
        return Err(invalid_grant());
    }
    Ok(row)
}

/// Marks a late reissue and records its event. Returns false if the session has changed since it was
/// read.
async fn reissue_late(
    app: &App,
    database: &CellDatabase,
    caller: &Caller<SignIn>,
    row: &SessionRow,
) -> Result<bool, Problem> {
    let session = &row.session;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    if !refresh_sql::reissue_late(&tx, caller.tenant().id, session).await? {
        return Ok(false);
    }
    let seconds_since_refresh = row.read_at.duration_since(session.refreshed_at).as_secs();
    let data = json!({
        "id": session.id.to_string(),
        "user_id": session.user.to_string(),
        "seconds_since_refresh": seconds_since_refresh,
    });
    let kind = EventKind::SessionRefreshRepeated;
    let event = caller.event(app.ids, app.clock.now(), kind, session.id, &data);
    events::record(&tx, &event).await?;
    tx.commit().await?;
    tracing::info!(session = %session.id, seconds_since_refresh, "refresh repeated late");
    Ok(true)
}

/// Returns the response to every invalid refresh token.
fn invalid_grant() -> Problem {
    let detail = "the refresh token is invalid or expired; the user must sign in again";
    Problem::new(Code::InvalidGrant, detail)
}
