//! Access tokens: JWTs as defined by RFC 9068.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Session, SessionId, TenantId, UserId};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AccessTokens, Keyring, decode_signed};
use crate::{clock::IdGenerator, db::Error};

pub(super) const TTL: SignedDuration = SignedDuration::from_mins(15);
/// Tolerated difference between the clocks of two instances, in seconds.
const CLOCK_SKEW: i64 = 60;

#[derive(Serialize, Deserialize)]
struct AccessTokenClaims {
    iss: String,
    aud: String,
    sub: String,
    sid: String,
    client_id: String,
    jti: String,
    iat: i64,
    nbf: i64,
    exp: i64,
    auth_time: i64,
    /// The session's generation.
    r#gen: u32,
}

pub struct IssuedToken {
    pub token: SecretString,
    pub expires_at: Timestamp,
}

/// The contents of an access token with a valid signature.
#[derive(Debug, Clone)]
pub struct VerifiedToken {
    tenant: TenantId,
    pub user: UserId,
    pub session: SessionId,
    /// The session's generation when the token was issued.
    pub generation: u32,
    not_before: i64,
    expires: i64,
    pub(super) key: Uuid,
}

impl VerifiedToken {
    /// Returns whether the token is for this tenant and valid at `now`.
    pub(super) fn is_valid_for(&self, tenant: TenantId, now: Timestamp) -> bool {
        let now = now.as_second();
        self.tenant == tenant && self.not_before <= now + CLOCK_SKEW && now < self.expires
    }
}

impl AccessTokens {
    /// Issues an access token for the session's current generation.
    pub async fn issue(
        &self,
        ids: IdGenerator,
        tenant: TenantId,
        session: &Session,
        now: Timestamp,
    ) -> Result<IssuedToken, Error> {
        let key = self.keyring.signing_key(now).await?;
        let seconds = now.as_second();
        let expires_at = Timestamp::from_second(seconds + TTL.as_secs()).unwrap_or(now);
        let claims = AccessTokenClaims {
            iss: self.issuer.to_string(),
            aud: tenant.to_string(),
            sub: session.user.to_string(),
            sid: session.id.to_string(),
            client_id: session.client.to_string(),
            jti: ids.generate_uuid(now).simple().to_string(),
            iat: seconds,
            nbf: seconds,
            exp: expires_at.as_second(),
            auth_time: session.created_at.as_second(),
            r#gen: session.generation,
        };
        let token = key.sign_jwt(&claims)?;
        Ok(IssuedToken {
            token: token.into(),
            expires_at,
        })
    }
}

/// Returns the contents of a token if one of our keys signed it and we are its issuer.
///
/// The header must be exactly what [`SigningKey`](super::signing_key::SigningKey) writes, so no
/// header field that an attacker chooses is interpreted.
pub(super) async fn verify(
    token: &str,
    issuer: &str,
    keyring: &Keyring,
    now: Timestamp,
) -> Result<Option<VerifiedToken>, Error> {
    let Some((header, _)) = token.split_once('.') else {
        return Ok(None);
    };
    if !is_plausible_header(header) {
        return Ok(None);
    }
    let Some(key) = keyring.find_by_header(header, now).await? else {
        return Ok(None);
    };
    let verified = || {
        let algorithm = key.algorithm.into();
        let claims: AccessTokenClaims = decode_signed(token, algorithm, &key.decoding_key).ok()?;
        (claims.iss == issuer).then_some(())?;
        Some(VerifiedToken {
            tenant: claims.aud.parse().ok()?,
            user: claims.sub.parse().ok()?,
            session: claims.sid.parse().ok()?,
            generation: claims.r#gen,
            not_before: claims.nbf,
            expires: claims.exp,
            key: key.id,
        })
    };
    Ok(verified())
}

/// Returns whether the header has the form of those that this service writes. Only such a header
/// can cause a database read for a key that is not loaded yet.
fn is_plausible_header(header: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct AccessTokenHeader<'a> {
        typ: &'a str,
        alg: &'a str,
        kid: &'a str,
    }
    let Ok(header) = BASE64.decode(header) else {
        return false;
    };
    serde_json::from_slice(&header).is_ok_and(|AccessTokenHeader { typ, alg, kid }| {
        typ == "at+jwt" && ["EdDSA", "ES256"].contains(&alg) && Uuid::try_parse(kid).is_ok()
    })
}
