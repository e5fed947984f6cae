//! What is answered to somebody who signs in.

use jiff::Timestamp;
use perennial_domain::{Session, User};
use secrecy::ExposeSecret;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    callers::{Tenant, tokens::Salt},
    db::Error,
    users::UserView,
};

/// The tokens of a session, and whose it is.
#[derive(Serialize, ToSchema)]
#[schema(as = Tokens, example = json!({
    "access_token": "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1c3JfMDE5MiJ9.c2lnbmF0dXJl",
    "token_type": "Bearer",
    "expires_in": 900,
    "expires_at": "2026-11-15T09:45:00Z",
    "refresh_token": "prn_rt_AQGS8MGisz",
    "refresh_expires_at": "2026-11-29T09:30:00Z",
    "session_id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
    "auth_id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5",
    "user": {"id": "usr_0192f0c1a2b37c4d8e5f60718293a4b5", "email": "ada@example.com", "created_at": "2026-11-15T09:30:00Z"}
}))]
pub struct TokensView {
    /// To be sent as `Authorization: Bearer`. A JWT.
    #[schema(
        example = "eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ1c3JfMDE5MiJ9.c2lnbmF0dXJl"
    )]
    access_token: String,
    /// Always `Bearer`.
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// For how many seconds the access token is good.
    #[schema(example = 900)]
    expires_in: i64,
    /// Until when that is.
    #[schema(format = DateTime, example = "2026-11-15T09:45:00Z")]
    expires_at: String,
    /// Gets the next access token, once; keep the newest. Opaque.
    #[schema(example = "prn_rt_AQGS8MGisz")]
    refresh_token: String,
    /// Until when the refresh token is good.
    #[schema(format = DateTime, example = "2026-11-29T09:30:00Z")]
    refresh_expires_at: String,
    /// The session's identifier; the access token's `sid`.
    #[schema(example = "ses_0192f0c1a2b37c4d8e5f60718293a4b5")]
    session_id: String,
    /// The user's identifier; the access token's `sub`.
    #[schema(example = "usr_0192f0c1a2b37c4d8e5f60718293a4b5")]
    auth_id: String,
    /// Who signed in.
    user: UserView,
}

impl TokensView {
    /// Makes the tokens of a session as it now stands.
    pub(super) async fn of(
        app: &App,
        tenant: &Tenant,
        session: &Session,
        user: &User,
        salt: &Salt,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let tokens = &app.bearers.tokens;
        let issued = tokens.issue(app.ids, tenant.id, session, now).await?;
        let generation = session.generation;
        let refresh = app
            .refresh_key
            .token(tenant.id, session.id, salt, generation);
        Ok(Self {
            access_token: issued.token.expose_secret().to_owned(),
            token_type: "Bearer",
            expires_in: issued.expires_at.as_second() - now.as_second(),
            expires_at: issued.expires_at.to_string(),
            refresh_token: refresh.expose_secret().to_owned(),
            refresh_expires_at: session.expires_at.to_string(),
            session_id: session.id.to_string(),
            auth_id: user.id.to_string(),
            user: UserView::from(user),
        })
    }
}

/// A session: one sign-in on one device.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session, example = json!({
    "id": "ses_0192f0c1a2b37c4d8e5f60718293a4b5",
    "current": true,
    "client_id": "cli_0192f0c1a2b37c4d8e5f60718293a4b5",
    "created_at": "2026-11-15T09:30:00Z",
    "last_used_at": "2026-11-15T09:30:00Z",
    "expires_at": "2026-11-29T09:30:00Z",
    "ip": "203.0.113.7",
    "user_agent": "Mozilla/5.0",
    "issuer": "https://accounts.example.com"
}))]
pub struct SessionView {
    /// The session's identifier.
    #[schema(example = "ses_0192f0c1a2b37c4d8e5f60718293a4b5")]
    id: String,
    /// Whether it is the one that this request was sent with.
    #[schema(example = true)]
    current: bool,
    /// The client that it was begun with.
    #[schema(example = "cli_0192f0c1a2b37c4d8e5f60718293a4b5")]
    client_id: String,
    /// When it was begun.
    #[schema(format = DateTime, example = "2026-11-15T09:30:00Z")]
    created_at: String,
    /// When it was last used, to the minute.
    #[schema(format = DateTime, example = "2026-11-15T09:30:00Z")]
    last_used_at: String,
    /// When it ends by itself, unless it is refreshed before.
    #[schema(format = DateTime, example = "2026-11-29T09:30:00Z")]
    expires_at: String,
    /// The address that it was begun from.
    #[schema(example = "203.0.113.7")]
    ip: String,
    /// What it was begun with, as the device says.
    #[schema(required, example = "Mozilla/5.0")]
    user_agent: Option<String>,
    /// The identity provider that vouched for the user.
    #[schema(example = "https://accounts.example.com")]
    issuer: String,
}

impl SessionView {
    /// A session as it is shown to somebody who uses that one, or another.
    pub(super) fn of(session: &Session, current: bool) -> Self {
        Self {
            id: session.id.to_string(),
            current,
            client_id: session.client.to_string(),
            created_at: session.created_at.to_string(),
            last_used_at: session.last_used_at.to_string(),
            expires_at: session.expires_at.to_string(),
            ip: session.address.to_string(),
            user_agent: session.user_agent.clone(),
            issuer: session.issuer.clone(),
        }
    }
}
