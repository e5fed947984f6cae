//! Credentials for sign-up and sign-in: an identity provider's access token and an email address.

use jiff::Timestamp;
use perennial_domain::{AsciiToken, ReportedEmail};
use utoipa::{ToSchema, openapi::Ref};

use crate::{
    app::App,
    auth::{Caller, SignIn},
    http::{
        json::{BodyFields, text},
        problem::{Code, Problem},
        schema::named,
    },
    identity_providers::TokenError,
};

/// An identity provider's access token with the user's email address.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Credentials, example = json!({
    "access_token": "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "email": "ada@example.com"
}))]
#[expect(dead_code, reason = "describes the body; `Credentials` parses it")]
pub struct CredentialsBody {
    /// The access token that the identity provider issued to the user.
    #[schema(
        min_length = 1,
        max_length = 16384,
        pattern = "^[!-~]+$",
        example = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    )]
    access_token: String,
    #[schema(schema_with = email)]
    email: String,
}

fn email() -> Ref {
    named::EMAIL.reference("The user's email address; case-insensitive.")
}

/// Parsed credentials, not yet verified.
pub(super) struct Credentials {
    access_token: AsciiToken<16_384>,
    email: ReportedEmail,
}

/// A user's identity at a provider, with the verified email address.
pub(super) struct VerifiedIdentity {
    pub issuer: String,
    pub subject: String,
    pub email: ReportedEmail,
    /// When the provider authenticated the user, if it says so.
    pub authenticated_at: Option<Timestamp>,
}

impl Credentials {
    pub(super) fn parse(mut fields: BodyFields) -> Result<Self, Problem> {
        let access_token = fields.required("access_token", text);
        let email = fields.required("email", text);
        fields.finish(|| {
            Some(Self {
                access_token: access_token?,
                email: email?,
            })
        })
    }

    /// Verifies the token with the tenant's identity providers, and the email address.
    pub(super) async fn authenticate(
        &self,
        app: &App,
        caller: &Caller<SignIn>,
    ) -> Result<VerifiedIdentity, Problem> {
        let (tenant, rate_limits) = (caller.tenant().id, &app.authenticator.rate_limits);
        rate_limits.count_sign_in(caller.require_client()?.id, caller.source())?;
        let token = self.access_token.as_str();
        let now = app.clock.now();
        let verifier = &app.identity_verifier;
        let identity = verifier.authenticate(&app.db, tenant, token, now).await?;
        let identity = identity.map_err(|error| {
            if !matches!(error, TokenError::ProviderUnavailable(_)) {
                rate_limits.record_invalid_token(caller.source());
            }
            to_problem(error)
        })?;
        rate_limits.count_identity(tenant, &identity.issuer, &identity.subject)?;
        let email = identity.email.filter(|_| identity.email_verified);
        let email: Option<ReportedEmail> = email.and_then(|email| email.parse().ok());
        let Some(email) = email else {
            let detail = "the identity provider has no verified email address for this user";
            return Err(Problem::new(Code::EmailUnverified, detail));
        };
        if !email.same_mailbox(&self.email) {
            let detail =
                "email must be the address that the identity provider has verified for this user";
            return Err(Problem::new(Code::EmailMismatch, detail));
        }
        Ok(VerifiedIdentity {
            issuer: identity.issuer,
            subject: identity.subject,
            email,
            authenticated_at: identity.authenticated_at,
        })
    }
}

/// Maps every invalid token to the same response. The log has the reason, but never the token.
fn to_problem(error: TokenError) -> Problem {
    match error {
        TokenError::Invalid(_) | TokenError::InvalidSignature => {
            tracing::debug!(%error, "identity provider token rejected");
            let detail = "the identity provider's access token is not valid";
            Problem::new(Code::InvalidToken, detail)
        }
        TokenError::ProviderUnavailable(reason) => {
            tracing::warn!(reason, "identity provider unavailable");
            Problem::unavailable("the identity provider is not available; try again later")
        }
    }
}
