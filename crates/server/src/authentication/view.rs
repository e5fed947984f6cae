//! JSON representations of tokens and sessions.

use jiff::Timestamp;
use perennial_domain::{Rfc3339Timestamp, Session, SessionUser};
use secrecy::ExposeSecret;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{Tenant, tokens::Salt},
    db::Error,
    users::SessionUserView,
};

/// The tokens of a session, and its user.
#[derive(Serialize, ToSchema)]
#[schema(as = Tokens, example = json!({
    "access_token": "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1c3JfMDE5MiJ9.c2lnbmF0dXJl",
    "token_type": "Bearer",
    "expires_in": 900,
    "expires_at": "2026-11-15T09:45:00.000000Z",
    "refresh_token": "prn_rt_AQGS8MGisz",
    "refresh_expires_at": "2026-11-29T09:30:00.000000Z",
    "session_id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
    "auth_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "user": {"id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5", "external_user_id": null, "email": "ada@example.com", "created_at": "2026-11-15T09:30:00.000000Z"}
}))]
pub struct TokensView {
    /// A JWT, to send as `Authorization: Bearer`.
    #[schema(
        example = "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1c3JfMDE5MiJ9.c2lnbmF0dXJl"
    )]
    access_token: String,
    /// Always `Bearer`.
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// Lifetime of the access token in seconds.
    #[schema(example = 900)]
    expires_in: i64,
    /// When the access token expires.
    #[schema(format = DateTime, example = "2026-11-15T09:45:00.000000Z")]
    expires_at: String,
    /// An opaque token that can be exchanged once for new tokens. Keep the most recent one.
    #[schema(example = "prn_rt_AQGS8MGisz")]
    refresh_token: String,
    /// When the refresh token expires.
    #[schema(format = DateTime, example = "2026-11-29T09:30:00.000000Z")]
    refresh_expires_at: String,
    /// The session's id; the access token's claim `sid`.
    #[schema(example = "ses_0192f0c1a2b37c4d8e5f60718293a4b5")]
    session_id: String,
    /// The user's id; the access token's claim `sub`.
    #[schema(example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    auth_id: String,
    /// The signed-in user.
    user: SessionUserView,
}

impl TokensView {
    /// Issues an access token, and the session's current refresh token.
    pub(super) async fn issue(
        app: &App,
        tenant: &Tenant,
        session: &Session,
        user: &SessionUser,
        salt: &Salt,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let access_tokens = &app.authenticator.tokens;
        let access = access_tokens
            .issue(app.ids, tenant.id, session, now)
            .await?;
        let refresh = app
            .refresh_keys
            .issue(tenant.id, session.id, salt, session.generation)?;
        Ok(Self {
            access_token: access.token.expose_secret().to_owned(),
            token_type: "Bearer",
            expires_in: access.expires_at.as_second() - now.as_second(),
            expires_at: Rfc3339Timestamp::from(access.expires_at).to_string(),
            refresh_token: refresh.expose_secret().to_owned(),
            refresh_expires_at: Rfc3339Timestamp::from(session.expires_at).to_string(),
            session_id: session.id.to_string(),
            auth_id: user.id.to_string(),
            user: SessionUserView::from(user),
        })
    }
}

/// A session of a user on one device.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session, example = json!({
    "id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
    "current": true,
    "client_id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
    "created_at": "2026-11-15T09:30:00.000000Z",
    "last_used_at": "2026-11-15T09:30:00.000000Z",
    "expires_at": "2026-11-29T09:30:00.000000Z",
    "ip": "203.0.113.7",
    "user_agent": "Mozilla/5.0",
    "issuer": "https://accounts.example.com"
}))]
pub struct SessionView {
    /// The session's id.
    #[schema(example = "ses_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: String,
    /// Whether this is the session of the request.
    #[schema(example = true)]
    current: bool,
    /// The client that created the session.
    #[schema(example = "cli_0192f0c1a2b37c4d8e5f60718293a4b5")]
    client_id: String,
    /// When the user signed in.
    #[schema(format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    created_at: String,
    /// When the session was last used, to the minute.
    #[schema(format = DateTime, example = "2026-11-15T09:30:00.000000Z")]
    last_used_at: String,
    /// When the session expires, unless it is refreshed.
    #[schema(format = DateTime, example = "2026-11-29T09:30:00.000000Z")]
    expires_at: String,
    /// The IP address at sign-in.
    #[schema(example = "203.0.113.7")]
    ip: String,
    /// The `User-Agent` header at sign-in.
    #[schema(required, example = "Mozilla/5.0")]
    user_agent: Option<String>,
    /// The identity provider that verified the user.
    #[schema(example = "https://accounts.example.com")]
    issuer: String,
}

impl SessionView {
    pub(super) fn new(session: &Session, current: bool) -> Self {
        Self {
            id: session.id.to_string(),
            current,
            client_id: session.client.to_string(),
            created_at: Rfc3339Timestamp::from(session.created_at).to_string(),
            last_used_at: Rfc3339Timestamp::from(session.last_used_at).to_string(),
            expires_at: Rfc3339Timestamp::from(session.expires_at).to_string(),
            ip: session.address.to_string(),
            user_agent: session.user_agent.clone(),
            issuer: session.issuer.clone(),
        }
    }
}
