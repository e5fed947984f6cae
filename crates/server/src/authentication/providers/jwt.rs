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

use super::{Key, Provider, Refusal};

/// The longest token that is looked at.
const MAX_BYTES: usize = 16 * 1024;
/// By how much clocks may differ, in seconds.
const SKEW: f64 = 60.0;

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
    pub(super) issuer: String,
    /// Empty if the token names no key.
    pub(super) key_id: String,
    algorithm: Algorithm,
}

/// What a verified token says of its subject.
pub(super) struct Claims {
    pub(super) subject: String,
    pub(super) email: Option<String>,
    pub(super) email_verified: Option<Value>,
}

/// The claims that are looked at. A claim that stands twice is refused by its type.
#[derive(Deserialize)]
struct Said {
    iss: String,
    sub: String,
    aud: Audience,
    exp: f64,
    nbf: Option<f64>,
    azp: Option<String>,
    email: Option<String>,
    email_verified: Option<Value>,
}

/// For whom a token is meant: one, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// Reads a token without believing it.
pub(super) fn read(token: &str) -> Result<Unverified, Refusal> {
    #[derive(Deserialize)]
    struct Issued {
        iss: String,
    }
    if token.len() > MAX_BYTES {
        return Err(Refusal::token("it is too long"));
    }
    if token.split('.').count() != 3 {
        return Err(Refusal::token("it is not a signed JWT"));
    }
    let header = decode_header(token).map_err(|_| Refusal::token("its header cannot be read"))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(Refusal::token("its algorithm is not one that we accept"));
    }
    if header.crit.is_some() {
        return Err(Refusal::token(
            "it demands an extension that we do not know",
        ));
    }
    let issued = insecure_decode_claims::<Issued>(token)
        .map_err(|_| Refusal::token("it names no issuer"))?;
    Ok(Unverified {
        issuer: issued.iss,
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
) -> Result<Claims, Refusal> {
    let algorithm = unverified.algorithm;
    if key.algorithm.is_some_and(|only| only != algorithm) {
        return Err(Refusal::token("its key is for another algorithm"));
    }
    let said: Said = signed(token, algorithm, key)?;
    if said.iss != provider.issuer {
        return Err(Refusal::token("its issuer is not listed"));
    }
    let meant_for = match &said.aud {
        Audience::One(one) => std::slice::from_ref(one),
        Audience::Several(several) => several,
    };
    let mut named = meant_for.iter().chain(&said.azp);
    if !named.any(|audience| provider.audiences.contains(audience)) {
        return Err(Refusal::token("it is meant for another audience"));
    }
    let now = now.as_duration().as_secs_f64();
    if !(said.exp.is_finite() && now < said.exp + SKEW) {
        return Err(Refusal::token("it has expired"));
    }
    if said
        .nbf
        .is_some_and(|begins| !(begins.is_finite() && begins <= now + SKEW))
    {
        return Err(Refusal::token("it is not valid yet"));
    }
    let fits = (1..=255).contains(&said.sub.len()) && !said.sub.contains(char::is_control);
    if !fits {
        return Err(Refusal::token("its subject is not one"));
    }
    Ok(Claims {
        subject: said.sub,
        email: said.email,
        email_verified: said.email_verified,
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
