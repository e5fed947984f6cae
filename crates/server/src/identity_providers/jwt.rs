//! Tokens that are JWTs, signed with one of the issuer's keys.
//!
//! `jsonwebtoken` verifies the signature. Claims are checked here, because its own checks accept a
//! token without `aud` or `iss`.

use jiff::Timestamp;
use jsonwebtoken::{
    Algorithm, dangerous::insecure_decode_claims, decode_header, errors::ErrorKind,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    IdentityClaims, IdentityProvider, ProviderKey, TokenError,
    claims::{self, Audience},
    token_kind::{HeaderType, TokenKindClaims},
};
use crate::auth::tokens::decode_signed;

/// Accepted algorithms. All are asymmetric: a verifier cannot sign.
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

/// The header fields that select the key, and the stated kind of token.
#[derive(Debug)]
pub(super) struct UnverifiedHeader {
    /// Empty if the header has no `kid`. Then the issuer must have only one key.
    pub(super) key_id: String,
    algorithm: Algorithm,
    kind: HeaderType,
}

/// The claims that are used. serde rejects duplicates.
#[derive(Deserialize)]
struct JwtClaims {
    iss: String,
    sub: String,
    /// Clerk has only `azp`.
    aud: Option<Audience>,
    exp: f64,
    nbf: Option<f64>,
    /// The client that the token was issued to.
    azp: Option<String>,
    email: Option<String>,
    /// A boolean, or a string at some providers.
    email_verified: Option<Value>,
    /// Microsoft Entra's counterpart of `email_verified`: a boolean, 1 or "1".
    xms_edov: Option<Value>,
    auth_time: Option<Value>,
    iat: Option<Value>,
    #[serde(flatten)]
    kind: TokenKindClaims,
}

#[derive(Deserialize)]
struct IssuerClaim {
    iss: String,
}

/// Returns the unverified claim `iss`, if the token is a JWT that has one.
pub(super) fn unverified_issuer(token: &str) -> Option<String> {
    let is_jwt = token.split('.').count() == 3;
    let claims = is_jwt.then(|| insecure_decode_claims::<IssuerClaim>(token));
    Some(claims?.ok()?.iss)
}

/// Rejects a JWT of a kind that the provider does not accept, without verifying it: for providers that
/// verify tokens themselves. Accepts everything that is not a JWT.
pub(super) fn check_unverified_kind(
    token: &str,
    provider: &IdentityProvider,
) -> Result<(), TokenError> {
    let Ok(header) = decode_header(token) else {
        return Ok(());
    };
    let header = HeaderType::parse(header.typ.as_deref())?;
    match insecure_decode_claims::<TokenKindClaims>(token) {
        Ok(claims) => claims.check(provider.accept, header, false),
        Err(_) => Ok(()),
    }
}

/// Parses the header. Rejects algorithms that are not accepted, critical extensions, and types other
/// than that of access tokens.
pub(super) fn parse_header(token: &str) -> Result<UnverifiedHeader, TokenError> {
    let header = decode_header(token).map_err(|_| TokenError::invalid("unreadable header"))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(TokenError::invalid("algorithm not accepted"));
    }
    if header.crit.is_some() {
        return Err(TokenError::invalid("unknown critical header extension"));
    }
    Ok(UnverifiedHeader {
        key_id: header.kid.unwrap_or_default(),
        algorithm: header.alg,
        kind: HeaderType::parse(header.typ.as_deref())?,
    })
}

/// Verifies signature and claims of a token with the given key of its issuer.
pub(super) fn verify(
    token: &str,
    header: &UnverifiedHeader,
    key: &ProviderKey,
    provider: &IdentityProvider,
    now: Timestamp,
) -> Result<IdentityClaims, TokenError> {
    let algorithm = header.algorithm;
    if key.algorithm.is_some_and(|allowed| allowed != algorithm) {
        return Err(TokenError::invalid("key is for another algorithm"));
    }
    let claims: JwtClaims =
        decode_signed(token, algorithm, &key.verifier).map_err(|error| match error.kind() {
            ErrorKind::Json(_) => {
                TokenError::invalid("claims are missing, duplicated or of the wrong type")
            }
            _ => TokenError::InvalidSignature,
        })?;
    if claims.iss != provider.issuer {
        return Err(TokenError::unknown_issuer());
    }
    let audiences = claims.aud.map(Audience::into_vec).unwrap_or_default();
    let is_for_its_client =
        matches!((audiences.as_slice(), &claims.azp), ([only], Some(azp)) if only == azp);
    claims
        .kind
        .check(provider.accept, header.kind, is_for_its_client)?;
    claims::check_audience(provider, &audiences, &[claims.azp])?;
    claims::check_expiry(claims.exp, now)?;
    if let Some(nbf) = claims.nbf {
        claims::check_not_before(nbf, now)?;
    }
    Ok(IdentityClaims {
        subject: claims::check_subject(claims.sub)?,
        email: claims.email,
        email_verified: claims.email_verified.or_else(|| {
            let verified = claims.xms_edov?;
            Some(Value::Bool(
                verified == true || verified == 1 || verified == "1",
            ))
        }),
        authenticated_at: claims::authentication_time(
            claims.auth_time.as_ref(),
            claims.iat.as_ref(),
        ),
    })
}
