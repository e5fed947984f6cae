//! Keys, all derived from the master key.

use hkdf::Hkdf;
use sha2::Sha256;

use crate::config::MasterKey;

/// A value by which a database recognises the master key that it was set up with, without learning
/// anything about it.
pub fn check_value(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial master key check")
}

/// The key that signs cursors.
pub fn cursor_key(master: &MasterKey) -> [u8; 32] {
    derive(master, "perennial cursors")
}

/// A key for one purpose; different purposes have unrelated keys.
#[expect(
    clippy::expect_used,
    reason = "HKDF-SHA256 fails only for outputs longer than 8160 bytes"
)]
fn derive(master: &MasterKey, purpose: &str) -> [u8; 32] {
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(None, master.expose())
        .expand(purpose.as_bytes(), &mut key)
        .expect("32 bytes can be derived");
    key
}
