//! Access tokens: JWTs as RFC 9068 has them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{Session, SessionId, TenantId, UserId};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Keyring, Tokens};
use crate::{clock::Ids, db::Error};

/// How long an access token lives.
pub(super) const LIFETIME: SignedDuration = SignedDuration::from_mins(15);
/// By how much the clocks of two instances may differ, in seconds.
const SKEW: i64 = 60;

/// What an access token says.
#[derive(Serialize, Deserialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    sid: &'a str,
    client_id: &'a str,
    jti: &'a str,
    iat: i64,
    nbf: i64,
    exp: i64,
    auth_time: i64,
    r#gen: u32,
}

/// An access token that was just made.
pub struct Issued {
    /// The token.
    pub token: SecretString,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What an access token of ours says of its bearer.
#[derive(Debug, Clone)]
pub struct Verified {
    tenant: TenantId,
    /// Who it is.
    pub user: UserId,
    /// By which sign-in.
    pub session: SessionId,
    /// Of which generation of it.
    pub generation: u32,
    begins: i64,
    expires: i64,
    pub(super) key: Uuid,
}

impl Verified {
    /// Whether it is meant for this tenant, and for now.
    pub(super) fn is_for(&self, tenant: TenantId, now: Timestamp) -> bool {
        let now = now.as_second();
        self.tenant == tenant && self.begins <= now + SKEW && now < self.expires
    }
}

impl Tokens {
    /// Makes an access token for the session as it now is.
    pub async fn issue(
        &self,
        ids: Ids,
        tenant: TenantId,
        session: &Session,
        now: Timestamp,
    ) -> Result<Issued, Error> {
        let key = self.keyring.signing(now).await?;
        // Whole seconds, as everybody reads them.
        let seconds = now.as_second();
        let expires_at = Timestamp::from_second(seconds + LIFETIME.as_secs()).unwrap_or(now);
        let claims = Claims {
            iss: &self.issuer,
            aud: &tenant.to_string(),
            sub: &session.user.to_string(),
            sid: &session.id.to_string(),
            client_id: &session.client.to_string(),
            jti: &ids.uuid(now).simple().to_string(),
            iat: seconds,
            nbf: seconds,
            exp: expires_at.as_second(),
            auth_time: session.created_at.as_second(),
            r#gen: session.generation,
        };
        let claims =
            serde_json::to_vec(&claims).map_err(|error| Error::Failed(error.to_string()))?;
        let message = format!("{}.{}", key.header, BASE64.encode(claims));
        let signature = BASE64.encode(key.sign(message.as_bytes())?);
        Ok(Issued {
            token: format!("{message}.{signature}").into(),
            expires_at,
        })
    }
}

/// What a token says, if one of our keys has signed it, and as us.
pub(super) async fn read(
    token: &str,
    issuer: &str,
    keyring: &Keyring,
    now: Timestamp,
) -> Result<Option<Verified>, Error> {
    let Some((message, signature)) = token.rsplit_once('.') else {
        return Ok(None);
    };
    let Some((header, claims)) = message.split_once('.') else {
        return Ok(None);
    };
    if !could_be_ours(header) {
        return Ok(None);
    }
    let Some(key) = keyring.with_header(header, now).await? else {
        return Ok(None);
    };
    let verified = || {
        let signature = BASE64.decode(signature).ok()?;
        if !key.has_signed(message.as_bytes(), &signature) {
            return None;
        }
        let claims = BASE64.decode(claims).ok()?;
        let claims: Claims<'_> = serde_json::from_slice(&claims).ok()?;
        (claims.iss == issuer).then_some(())?;
        Some(Verified {
            tenant: claims.aud.parse().ok()?,
            user: claims.sub.parse().ok()?,
            session: claims.sid.parse().ok()?,
            generation: claims.r#gen,
            begins: claims.nbf,
            expires: claims.exp,
            key: key.id,
        })
    };
    Ok(verified())
}

/// Whether a header is worth asking the database for its key.
fn could_be_ours(header: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Header<'a> {
        typ: &'a str,
        alg: &'a str,
        kid: &'a str,
    }
    let Ok(header) = BASE64.decode(header) else {
        return false;
    };
    serde_json::from_slice(&header).is_ok_and(|Header { typ, alg, kid }| {
        typ == "at+jwt" && ["EdDSA", "ES256"].contains(&alg) && Uuid::try_parse(kid).is_ok()
    })
}
