//! `GET /console/callback`

use std::sync::Arc;

use axum::{
    extract::{RawQuery, State},
    http::HeaderMap,
};
use jiff::SignedDuration;
use perennial_domain::{Email, StaffRole};
use secrecy::ExposeSecret;
use url::form_urlencoded;

use super::{
    PendingSignIn, Redirect, code_flow_client, error_page, redirect, redirect_uri, set_cookie,
};
use crate::{
    app::App,
    auth::staff::{
        self, NewStaffMember, NewStaffSession, SESSION_ABSOLUTE_TIMEOUT, StaffChange, Visitor,
        cookie, table,
    },
    http::problem::{Problem, PublicResponses},
    identity_providers::{SignedInPerson, TokenError},
};

/// Why the sign-in failed, as the console shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignInError {
    /// The sign-in was started in another browser, or more than 10 minutes ago.
    Expired,
    /// The provider refused, or its response is invalid.
    Refused,
    ProviderUnavailable,
    /// The provider has not verified the email address.
    EmailUnverified,
    /// The person is not invited, and in none of the groups.
    NotInvited,
}

impl SignInError {
    const fn code(self) -> &'static str {
        match self {
            Self::Expired => "sign_in_expired",
            Self::Refused => "sign_in_refused",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::EmailUnverified => "email_unverified",
            Self::NotInvited => "not_invited",
        }
    }
}

impl From<TokenError> for SignInError {
    fn from(error: TokenError) -> Self {
        tracing::warn!(%error, "a staff member cannot sign in");
        match error {
            TokenError::ProviderUnavailable(_) => Self::ProviderUnavailable,
            TokenError::Invalid(_) | TokenError::InvalidSignature => Self::Refused,
        }
    }
}

/// Complete the sign-in with an identity provider
///
/// The provider redirects the browser here. Signs the person in if the provider has verified the email address and the person
/// was invited with it, or is in one of the configured groups. Redirects to the console, with an error in the fragment if the
/// person cannot sign in: `sign_in_expired`, `sign_in_refused`, `provider_unavailable`, `email_unverified` or `not_invited`.
#[utoipa::path(
    get,
    path = "/console/callback",
    tag = "Console",
    operation_id = "completeConsoleSignIn",
    security(()),
    params(
        ("code" = Option<String>, Query, description = "The authorization code.", example = "SplxlOBeZQQYbYS6WxSbIA"),
        ("state" = Option<String>, Query, description = "The state of the sign-in.", example = "af0ifjsldkj"),
    ),
    responses(
        (status = 303, description = "To the console."),
        PublicResponses,
    ),
)]
pub async fn callback(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Redirect, Problem> {
    let change = visitor.change(app.ids, app.clock.now());
    let removed = set_cookie("", SignedDuration::ZERO)?;
    match sign_in(&app, &change, &headers, &query.unwrap_or_default()).await? {
        Ok(NewStaffSession { secret, .. }) => {
            let secret = secret.expose_secret();
            let session = cookie::set(cookie::NAME, secret, SESSION_ABSOLUTE_TIMEOUT, "Strict");
            let session =
                session.ok_or_else(|| Problem::internal(&"a cookie is not a valid header"))?;
            redirect("/console/", &[removed, session])
        }
        Err(error) => redirect(&error_page(error.code()), &[removed]),
    }
}

async fn sign_in(
    app: &App,
    change: &StaffChange,
    headers: &HeaderMap,
    query: &str,
) -> Result<Result<NewStaffSession, SignInError>, Problem> {
    let Some(config) = &app.console.sign_in else {
        return Ok(Err(SignInError::Refused));
    };
    let parameter = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value)
    };
    let pending = PendingSignIn::from_cookie(app, headers, change.now);
    let pending =
        pending.filter(|pending| parameter("state").as_deref() == Some(&pending.secrets.state));
    let Some(pending) = pending else {
        return Ok(Err(SignInError::Expired));
    };
    let Some(code) = parameter("code") else {
        return Ok(Err(SignInError::Refused));
    };
    let redirect_uri = redirect_uri(app);
    let client = code_flow_client(config, &redirect_uri);
    let verifier = &app.identity_verifier;
    let person = verifier.exchange_code(&client, &pending.secrets, &code, change.now);
    let person = match person.await {
        Ok(person) => person,
        Err(error) => return Ok(Err(error.into())),
    };
    create_session(app, change, &person, role(&config.groups, &person)).await
}

/// Returns the role of the first configured group that the person is in.
fn role(groups: &[(String, StaffRole)], person: &SignedInPerson) -> Option<StaffRole> {
    let mut roles = groups.iter();
    let found = roles.find(|(group, _)| person.groups.contains(group));
    found.map(|(_, role)| *role)
}

async fn create_session(
    app: &App,
    change: &StaffChange,
    person: &SignedInPerson,
    role: Option<StaffRole>,
) -> Result<Result<NewStaffSession, SignInError>, Problem> {
    let identity = &person.identity;
    let email = identity.email.as_ref().filter(|_| identity.email_verified);
    let Some(email) = email.and_then(|email| email.parse::<Email>().ok()) else {
        return Ok(Err(SignInError::EmailUnverified));
    };
    let mut home = app.db.home()?.connection().await?;
    let tx = home.begin();
    let member = match role {
        Some(role) => {
            let new = NewStaffMember {
                tenant: None,
                email: Some(&email),
                role,
                is_by_group: true,
            };
            Some(staff::ensure_member(&tx, change, new).await?.id)
        }
        None => table::find_invited(&tx, &email).await?,
    };
    let session = match member {
        Some(member) => staff::sign_in(&tx, change, member).await?,
        None => None,
    };
    match session {
        Some(session) => {
            tx.commit().await?;
            Ok(Ok(session))
        }
        None => Ok(Err(SignInError::NotInvited)),
    }
}
