//! The sealed secrets of an endpoint.

use jiff::Timestamp;
use perennial_domain::WebhookEndpointId;
use secrecy::ExposeSecret;

use super::signature::WebhookSecret;
pub use crate::crypto::SealedSecret;
use crate::{crypto::DerivedKeys, db::Error};

/// The encrypted secrets of an endpoint.
#[derive(Debug, Clone)]
pub struct SealedSecrets {
    pub present: SealedSecret,
    /// The secret before the last rotation, and when it expires.
    pub previous: Option<(SealedSecret, Timestamp)>,
}

/// Encrypts a secret for an endpoint.
pub fn seal(keys: &DerivedKeys, secret: &WebhookSecret, id: WebhookEndpointId) -> SealedSecret {
    keys.seal(secret.to_text().expose_secret(), &sealing_owner(id))
}

/// Returns the owner of an endpoint's sealed secrets.
pub fn sealing_owner(id: WebhookEndpointId) -> String {
    format!("webhook endpoint {id}")
}

impl SealedSecrets {
    /// Decrypts the secrets that sign at `now`, the present one first.
    pub fn open(
        &self,
        keys: &DerivedKeys,
        id: WebhookEndpointId,
        now: Timestamp,
    ) -> Result<Vec<WebhookSecret>, Error> {
        let previous = self.previous.as_ref();
        let previous = previous.filter(|(_, expires_at)| *expires_at > now);
        let sealed = std::iter::once(&self.present).chain(previous.map(|(sealed, _)| sealed));
        let owner = sealing_owner(id);
        sealed
            .map(|sealed| {
                let text = keys.open(sealed, &owner);
                let text = text.map_err(|error| Error::Internal(error.to_string()))?;
                WebhookSecret::parse(text.expose_secret())
                    .map_err(|error| Error::Internal(error.to_string()))
            })
            .collect()
    }
}
