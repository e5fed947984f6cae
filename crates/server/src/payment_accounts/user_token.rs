//! The signed value by which a payment provider's subscription names its user.
//!
//! A checkout that the service creates has it in its custom data, which the subscriber can read and, in a checkout of their
//! own, choose. So the id is signed, for one payment account.

use hex::FromHex;
use hmac::{Hmac, KeyInit, Mac};
use perennial_domain::{PaymentAccountId, UserId};
use sha2::Sha256;

use crate::crypto::DerivedKeys;

/// The name of the value in the custom data.
pub const FIELD: &str = "perennial_user";

/// How many bytes of the HMAC are part of the value.
const MAC_BYTES: usize = 16;

/// Returns the value for a user.
pub fn sign(keys: &DerivedKeys, account: PaymentAccountId, user: UserId) -> String {
    let mac = compute_mac(&keys.in_use().user_tokens, account, user).finalize();
    let mac = mac.into_bytes();
    let bytes: [u8; MAC_BYTES] = mac.first_chunk().copied().unwrap_or_default();
    format!("{user}.{}", hex::encode(bytes))
}

/// Returns the user that a value names. `None` if the service did not sign it for this account.
pub fn verify(keys: &DerivedKeys, account: PaymentAccountId, token: &str) -> Option<UserId> {
    let (user, digits) = token.split_once('.')?;
    let user: UserId = user.parse().ok()?;
    let bytes = <[u8; MAC_BYTES]>::from_hex(digits).ok()?;
    let mut all = keys.all();
    let is_signed = all.any(|keys| {
        let mac = compute_mac(&keys.user_tokens, account, user);
        mac.verify_truncated_left(&bytes).is_ok()
    });
    is_signed.then_some(user)
}

#[expect(clippy::expect_used, reason = "HMAC accepts keys of any length")]
fn compute_mac(key: &[u8; 32], account: PaymentAccountId, user: UserId) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC accepts any key length");
    mac.update(format!("{account} {user}").as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use perennial_domain::Id;
    use uuid::Uuid;

    use super::*;
    use crate::{
        config::{MasterKey, MasterKeys},
        randomness::Randomness,
    };

    #[test]
    fn token_names_its_user_for_its_account_only() {
        let [keys, other_keys] = [(); 2].map(|()| {
            DerivedKeys::new(&MasterKeys {
                present: MasterKey::generate(Randomness),
                previous: None,
            })
        });
        let account = PaymentAccountId::new(Uuid::max());
        let other_account = PaymentAccountId::new(Uuid::from_u128(1));
        let user = UserId::new(Uuid::from_u128(2));
        let token = sign(&keys, account, user);
        assert_eq!(verify(&keys, account, &token), Some(user));
        assert_eq!(verify(&keys, other_account, &token), None);
        assert_eq!(verify(&other_keys, account, &token), None);
        let other_user = UserId::new(Uuid::from_u128(3)).to_string();
        let (own, mac) = token.split_once('.').unwrap();
        for tampered in [
            format!("{other_user}.{mac}"),
            format!("{own}."),
            format!("{own}.{}", mac.replace(mac.get(..1).unwrap(), "g")),
            format!("{own}.{}", mac.get(..30).unwrap()),
            format!("{own}.é"),
            own.to_owned(),
            String::new(),
        ] {
            assert_eq!(verify(&keys, account, &tampered), None, "{tampered}");
        }
    }
}
