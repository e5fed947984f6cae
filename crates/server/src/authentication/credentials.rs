//! What somebody signs in with: an identity provider's access token, and the e-mail address that it is for.

use perennial_domain::{Email, Word};
use utoipa::ToSchema;

use crate::{
    app::App,
    callers::{Caller, SignIn},
    http::{
        json::{Fields, text},
        problem::{Code, Problem},
    },
    providers::Refusal,
    users::email_in,
};

/// What somebody signs in or signs up with.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Credentials, example = json!({
    "access_token": "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "email": "ada@example.com"
}))]
#[expect(dead_code, reason = "describes the body; `Credentials` reads it")]
pub struct CredentialsBody {
    /// The access token that the identity provider gave the user.
    #[schema(
        min_length = 1,
        max_length = 16384,
        pattern = "^[!-~]+$",
        example = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    )]
    access_token: String,
    #[schema(schema_with = email_in)]
    email: String,
}

/// What a request signs in with, not proven yet.
pub(super) struct Credentials {
    access_token: Word<16_384>,
    email: Email,
}

/// A user as an identity provider vouches for it, with the e-mail address that it has there.
pub(super) struct Proven {
    pub issuer: String,
    pub subject: String,
    pub email: Email,
}

impl Credentials {
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let access_token = fields.required("access_token", text);
        let email = fields.required("email", text);
        fields.finish(|| {
            Some(Self {
                access_token: access_token?,
                email: email?,
            })
        })
    }

    /// Whom these credentials prove.
    pub(super) async fn prove(
        &self,
        app: &App,
        caller: &Caller<SignIn>,
    ) -> Result<Proven, Problem> {
        let token = self.access_token.as_str();
        let (tenant, attempts) = (caller.tenant().id, &app.bearers.attempts);
        attempts.sign_in(caller.client().id, caller.source())?;
        let proven = app.providers.prove(&app.db, tenant, token, app.clock.now());
        let identity = proven.await?.map_err(|refusal| {
            if !matches!(refusal, Refusal::Unavailable(_)) {
                attempts.guessed(caller.source());
            }
            refused(refusal)
        })?;
        attempts.proven(tenant, &identity.issuer, &identity.subject)?;
        let verified = identity.email.filter(|_| identity.email_verified);
        let verified: Option<Email> = verified.and_then(|email| email.parse().ok());
        let Some(email) = verified else {
            let detail = "the identity provider does not vouch for an e-mail address of this user";
            return Err(Problem::new(Code::EmailUnverified, detail));
        };
        if !email.is_same(&self.email) {
            let detail = "the identity provider has another e-mail address for this user";
            return Err(Problem::new(Code::EmailMismatch, detail));
        }
        Ok(Proven {
            issuer: identity.issuer,
            subject: identity.subject,
            email,
        })
    }
}

/// One answer for all that can be wrong with a token; the operator's log says more, and none of the token.
fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Token(_) | Refusal::Signature => {
            tracing::debug!(%refusal, "a token was refused");
            let detail = "the identity provider's access token is not accepted";
            Problem::new(Code::InvalidToken, detail)
        }
        Refusal::Unavailable(why) => {
            tracing::warn!(why, "an identity provider cannot be asked");
            Problem::unavailable(
                "the identity provider cannot be asked right now; try again in a moment",
            )
        }
    }
}
