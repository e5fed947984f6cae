//! Tokens that carry their proof: JWTs, signed by one of the issuer's keys.
//!
//! The library verifies the signature. What the claims must say is written out here, because its own
//! checks let a token pass that says nothing: a missing `aud` or `iss` would count as a right one.

use jiff::Timestamp;
use jsonwebtoken::{
    Algorithm, Validation, dangerous::insecure_decode_claims, decode, decode_header,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Key, Provider, Refusal, Said,
    checks::{self, Audience},
};

/// Asymmetric ones: whoever verifies cannot sign.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::EdDSA,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// What a token says before anything is verified: enough to find who could verify it.
#[derive(Debug)]
pub(super) struct Unverified {
    /// Empty if the token names no key.
    pub(super) key_id: String,
    algorithm: Algorithm,
}

/// The claims that are looked at. A claim that stands twice is refused by its type.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    exp: f64,
    nbf: Option<f64>,
    azp: Option<String>,
    email: Option<String>,
    email_verified: Option<Value>,
}

#[derive(Deserialize)]
struct Issued {
    iss: String,
}

/// Who a token says has made it, if it is one that says so.
pub(super) fn issuer(token: &str) -> Option<String> {
    let looks_like_one = token.split('.').count() == 3;
    let issued = looks_like_one.then(|| insecure_decode_claims::<Issued>(token));
    Some(issued?.ok()?.iss)
}

/// Reads a token without believing it.
pub(super) fn read(token: &str) -> Result<Unverified, Refusal> {
    let header = decode_header(token).map_err(|_| Refusal::token("its header cannot be read"))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(Refusal::token("its algorithm is not one that we accept"));
    }
    if header.crit.is_some() {
        return Err(Refusal::token(
            "it demands an extension that we do not know",
        ));
    }
    Ok(Unverified {
        key_id: header.kid.unwrap_or_default(),
        algorithm: header.alg,
    })
}

/// Verifies a token of this provider, with this key of the issuer's, at `now`.
pub(super) fn verify(
    token: &str,
    unverified: &Unverified,
    key: &Key,
    provider: &Provider,
    now: Timestamp,
) -> Result<Said, Refusal> {
    let algorithm = unverified.algorithm;
    if key.algorithm.is_some_and(|only| only != algorithm) {
        return Err(Refusal::token("its key is for another algorithm"));
    }
    let claims: Claims = signed(token, algorithm, key)?;
    if claims.iss != provider.issuer {
        return Err(Refusal::token("its issuer is not listed"));
    }
    checks::audience(provider, claims.aud.all().into_iter().chain(claims.azp))?;
    checks::not_expired(claims.exp, now)?;
    claims
        .nbf
        .map_or(Ok(()), |nbf| checks::has_begun(nbf, now))?;
    Ok(Said {
        subject: checks::subject(claims.sub)?,
        email: claims.email,
        email_verified: claims.email_verified,
    })
}

/// The claims, if the signature is right. Nothing else is checked here.
fn signed<T: DeserializeOwned>(token: &str, algorithm: Algorithm, key: &Key) -> Result<T, Refusal> {
    let mut signature_only = Validation::new(algorithm);
    signature_only.required_spec_claims.clear();
    signature_only.validate_exp = false;
    signature_only.validate_aud = false;
    match decode::<T>(token, &key.verifier, &signature_only) {
        Ok(token) => Ok(token.claims),
        Err(error) => match error.kind() {
            jsonwebtoken::errors::ErrorKind::Json(_) => Err(Refusal::token(
                "its claims are missing, doubled or of the wrong type",
            )),
            _ => Err(Refusal::Signature),
        },
    }
}
