//! Encryption of an account's API key and secrets, and of the bodies of its notifications.

use jiff::Timestamp;
use perennial_domain::{PaymentAccountId, PaymentNotificationId};
use secrecy::{ExposeSecret, SecretString};

pub use crate::crypto::SealedSecret;
use crate::{crypto::DerivedKeys, db::Error, randomness::Randomness};

/// Returns the owner of an account's sealed API key.
pub fn api_key_owner(id: PaymentAccountId) -> String {
    format!("API key of payment account {id}")
}

/// Returns the owner of an account's sealed secrets.
pub fn secret_owner(id: PaymentAccountId) -> String {
    format!("secret of payment account {id}")
}

/// Returns the owner of a notification's sealed body.
pub fn body_owner(id: PaymentNotificationId) -> String {
    format!("payment notification {id}")
}

/// Generates a secret of 32 hexadecimal digits. Lemon Squeezy accepts up to 40 characters.
pub fn generate_secret(randomness: Randomness) -> SecretString {
    format!("{:032x}", u128::from_be_bytes(randomness.bytes())).into()
}

/// Decrypts the secrets that are not expired at `now`.
pub fn open_secrets(
    keys: &DerivedKeys,
    id: PaymentAccountId,
    secrets: &[(SealedSecret, Option<Timestamp>)],
    now: Timestamp,
) -> Result<Vec<SecretString>, Error> {
    let owner = secret_owner(id);
    let is_live = |expires_at: Option<Timestamp>| expires_at.is_none_or(|at| now < at);
    { secrets.iter() }
        .filter(|(_, expires_at)| is_live(*expires_at))
        .map(|(sealed, _)| open(keys, sealed, &owner))
        .collect()
}

/// Encrypts the body of a notification. Bytes that are not UTF-8 are replaced: no provider sends any.
pub fn seal_body(keys: &DerivedKeys, id: PaymentNotificationId, body: &[u8]) -> SealedSecret {
    keys.seal(&String::from_utf8_lossy(body), &body_owner(id))
}

/// Decrypts the body of a notification.
pub fn open_body(
    keys: &DerivedKeys,
    id: PaymentNotificationId,
    sealed: &SealedSecret,
) -> Result<Vec<u8>, Error> {
    let body = open(keys, sealed, &body_owner(id))?;
    Ok(body.expose_secret().as_bytes().to_vec())
}

fn open(keys: &DerivedKeys, sealed: &SealedSecret, owner: &str) -> Result<SecretString, Error> {
    let opened = keys.open(sealed, owner);
    opened.map_err(|error| Error::Internal(error.to_string()))
}
