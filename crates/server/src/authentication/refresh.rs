//! `POST /authentication/refresh-token`
//!
//! A forged token is rejected without a database read. The current token is exchanged by one
//! compare-and-set on the session's row, so of concurrent requests one rotates the generation and
//! the others are treated as requests with the previous token. [`Session::refresh_decision`]
//! decides about previous and older tokens.
//!
//! [`Session::refresh_decision`]: perennial_domain::Session::refresh_decision

use std::{sync::Arc, time::Instant};

use axum::{extract::State, http::StatusCode};
use jiff::Timestamp;
use perennial_domain::{AsciiToken, RefreshDecision};
use utoipa::ToSchema;

use super::{revoke_sessions::revoke, view::TokensView};
use crate::{
    app::App,
    auth::{
        Caller, SignIn,
        sessions::{
            RevokeReason,
            table::{self, SessionGeneration, SessionRow},
        },
        tokens::ParsedRefreshToken,
    },
    db::CellDatabase,
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
/// the same tokens again for 30 seconds, or for a day if the new tokens have not been used yet, so that concurrent tabs
/// and lost responses don't sign users out. Using an older one revokes the session.
#[utoipa::path(
    post,
    path = "/authentication/refresh-token",
    tag = "Authentication",
    operation_id = "refreshToken",
    request_body(content = RefreshBody, description = "The refresh token."),
    responses(
        (status = 200, description = "The session's next tokens.", body = TokensView,
            headers(("Cache-Control" = String, description = "`no-store`."))),
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
    let token = ParsedRefreshToken::parse(token.as_str())
        .filter(|token| app.refresh_key.verify(token, tenant.id));
    let Some(token) = token else {
        rate_limits.record_invalid_token(source);
        return Err(invalid_grant());
    };
    rate_limits.check_session(token.session, Instant::now())?;
    let database = app.database_for(tenant)?;
    let now = app.clock.now();
    let row = match rotate(database, &caller, &token, now).await? {
        Some(row) => row,
        None => reissue(&app, database, &caller, &token).await?,
    };
    let tokens = TokensView::issue(&app, tenant, &row.session, &row.user, &row.salt, now).await?;
    Ok(NoStore(StatusCode::OK, tokens))
}

/// Starts the next generation if the token's generation is the current one.
async fn rotate(
    database: &CellDatabase,
    caller: &Caller<SignIn>,
    token: &ParsedRefreshToken,
    now: Timestamp,
) -> Result<Option<SessionRow>, Problem> {
    let current = SessionGeneration {
        id: token.session,
        client: caller.client().id,
        salt: token.salt,
        generation: token.generation,
    };
    let connection = database.connection().await?;
    let tenant = caller.tenant().id;
    Ok(table::rotate(&connection, tenant, current, now).await?)
}

/// Handles a token that is not the current one: returns the session if its tokens can be issued
/// again, or revokes it if the token was reused.
async fn reissue(
    app: &App,
    database: &CellDatabase,
    caller: &Caller<SignIn>,
    token: &ParsedRefreshToken,
) -> Result<SessionRow, Problem> {
    let row = table::find(database, caller.tenant().id, token.session).await?;
    // Counted for ended sessions only, so that an active session cannot be locked out.
    let is_active = |row: &SessionRow| row.session.is_active(row.read_at);
    if !row.as_ref().is_some_and(is_active) {
        app.authenticator
            .rate_limits
            .record_ended_session(token.session);
    }
    let row = row
        .filter(|row| row.session.client == caller.client().id)
        .ok_or_else(invalid_grant)?;
    let session = &row.session;
    match session.refresh_decision(token.generation, row.read_at) {
        RefreshDecision::Reissue => Ok(row),
        RefreshDecision::Revoke => {
            let mut connection = database.connection().await?;
            let reason = RevokeReason::RefreshTokenReused;
            revoke(app, connection.begin(), caller, reason, &[session.id]).await?;
            tracing::warn!(session = %session.id, "refresh token reused; session revoked");
            Err(invalid_grant())
        }
        RefreshDecision::Reject => Err(invalid_grant()),
        // `rotate` found another generation: the database was restored between the two reads.
        RefreshDecision::Rotate => Err(Problem::unavailable(
            "the session cannot be refreshed right now; try again later",
        )),
    }
}

/// Returns the response to every invalid refresh token.
fn invalid_grant() -> Problem {
    let detail = "the refresh token is invalid or expired; the user must sign in again";
    Problem::new(Code::InvalidGrant, detail)
}
