//! Tokens that carry no proof: the provider that made them is asked.
//!
//! - **Introspection** (RFC 7662): the provider says whether a token is good, and for whom.
//! - **Token-info**: the same without credentials, as Google has it.
//! - **Userinfo**: the provider says whose it is, but not for whom it was made; whoever has a token of the
//!   same provider for another product passes. Only for operators who say that they accept that.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Answer, Provider, Refusal, Said, Web,
    checks::{self, Audience},
};

/// What is read of an answer about a token. Numbers may come as text.
#[derive(Deserialize)]
struct About {
    active: Option<bool>,
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<Audience>,
    azp: Option<String>,
    client_id: Option<String>,
    exp: Option<Value>,
    email: Option<String>,
    email_verified: Option<Value>,
}

/// Asks an introspection endpoint, as the client that the operator named.
pub(super) async fn introspect(
    web: &Web,
    endpoint: &str,
    (client_id, secret): (&str, &str),
    provider: &Provider,
    token: &str,
    now: Timestamp,
) -> Result<Said, Refusal> {
    let form = [("token", token), ("token_type_hint", "access_token")];
    let answer = web.post(endpoint, &form, Some((client_id, secret))).await;
    let about = read(endpoint, &answer.map_err(Refusal::Unavailable)?)?;
    if about.active != Some(true) {
        return Err(Refusal::token("its issuer says that it is not active"));
    }
    judge(about, provider, now)
}

/// Asks a token-info endpoint, which answers 400 to what it does not know.
pub(super) async fn tokeninfo(
    web: &Web,
    endpoint: &str,
    provider: &Provider,
    token: &str,
    now: Timestamp,
) -> Result<Said, Refusal> {
    let answer = web.post(endpoint, &[("access_token", token)], None).await;
    let answer = answer.map_err(Refusal::Unavailable)?;
    if answer.status == 400 {
        return Err(Refusal::token("its issuer does not know it"));
    }
    judge(read(endpoint, &answer)?, provider, now)
}

fn read(endpoint: &str, answer: &Answer) -> Result<About, Refusal> {
    answer.read(endpoint).map_err(Refusal::Unavailable)
}

fn judge(about: About, provider: &Provider, now: Timestamp) -> Result<Said, Refusal> {
    if about.iss.is_some_and(|issuer| issuer != provider.issuer) {
        return Err(Refusal::token("its issuer is not listed"));
    }
    let named = [about.azp, about.client_id].into_iter().flatten();
    let meant_for = about.aud.map(Audience::all).unwrap_or_default();
    checks::audience(provider, meant_for.into_iter().chain(named))?;
    if let Some(exp) = about.exp {
        let exp = exp.as_f64().or_else(|| exp.as_str()?.parse().ok());
        checks::not_expired(exp.unwrap_or(f64::NAN), now)?;
    }
    Ok(Said {
        subject: checks::subject(about.sub.unwrap_or_default())?,
        email: about.email,
        email_verified: about.email_verified,
    })
}
