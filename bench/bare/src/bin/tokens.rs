//! Signs tokens for users and sessions that SQL has inserted: signing in over HTTP would take minutes.
//!
//!     tokens MASTER_KEY KEY SAMPLE CLAIM... < VALUES > TOKENS
//!
//! SAMPLE is a token that the service has issued. Each new token is a copy of it, with its own signature and other values of
//! these claims: one line of VALUES, separated by spaces. KEY is the private key of SAMPLE in hexadecimal, as the table
//! `signing_keys` stores it, encrypted with a key that is derived from MASTER_KEY. If it is `sandbox`, the key is that of a
//! sandbox's built-in identity provider. The service's `crypto.rs` derives the same keys.

#![allow(
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a benchmark tool: a panic message is enough"
)]

use std::io::{BufRead, BufWriter, Write};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
    signature::Ed25519KeyPair,
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as BASE64},
};

/// Version and key id, which precede the nonce.
const SEALED_HEADER_LEN: usize = 5;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |message: &str| arguments.next().expect(message);
    let master = BASE64.decode(argument("MASTER_KEY is missing"));
    let master = master.expect("MASTER_KEY must be base64url");
    let key = argument("KEY is missing");
    let sample = argument("SAMPLE is missing");
    let names: Vec<String> = arguments.collect();

    let mut parts = sample.split('.');
    let header = parts.next().expect("SAMPLE must be a JWT");
    let [header_text, claims] = [header, parts.next().expect("SAMPLE must be a JWT")]
        .map(|part| String::from_utf8(BASE64.decode(part).expect("base64url")).expect("UTF-8"));
    let key = if key == "sandbox" {
        let seed = derive(&master, "perennial sandbox issuer");
        Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed of 32 bytes")
    } else {
        let owner = format!("signing key {}", claim(&header_text, "kid"));
        open_key(&master, &decode_hex(&key)[SEALED_HEADER_LEN..], &owner)
    };

    let mut tokens = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("VALUES must be readable");
        let mut claims = claims.clone();
        for (name, value) in names.iter().zip(line.split(' ')) {
            let old = format!("\"{name}\":\"{}\"", claim(&claims, name));
            claims = claims.replace(&old, &format!("\"{name}\":\"{value}\""));
        }
        let message = format!("{header}.{}", BASE64.encode(claims));
        let signature = BASE64.encode(key.sign(message.as_bytes()));
        writeln!(tokens, "{message}.{signature}").expect("TOKENS must be writable");
    }
    tokens.flush().expect("TOKENS must be writable");
}

/// Returns the value of a string in a JSON object.
fn claim<'a>(json: &'a str, name: &str) -> &'a str {
    let (_, rest) = json
        .split_once(&format!("\"{name}\":\""))
        .expect("SAMPLE lacks a claim");
    rest.split_once('"').expect("SAMPLE must be JSON").0
}

fn decode_hex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("KEY must be hex");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Derives a key for one purpose by HKDF-SHA256.
fn derive(master: &[u8], purpose: &str) -> [u8; 32] {
    let mut key = [0; 32];
    let salt = Salt::new(HKDF_SHA256, &[]).extract(master);
    let purpose: &[&[u8]] = &[purpose.as_bytes()];
    let derived = salt.expand(purpose, HKDF_SHA256).expect("32 bytes");
    derived.fill(&mut key).expect("32 bytes");
    key
}

/// Decrypts a signing key: nonce, ciphertext and tag of AES-256-GCM.
fn open_key(master: &[u8], encrypted: &[u8], owner: &str) -> Ed25519KeyPair {
    let sealing = derive(master, "perennial sealed secrets");
    let sealing = UnboundKey::new(&AES_256_GCM, &sealing).expect("a key of 32 bytes");
    let (nonce, text) = encrypted.split_at(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(nonce).expect("a nonce of 12 bytes");
    let mut text = text.to_vec();
    let text = LessSafeKey::new(sealing).open_in_place(nonce, Aad::from(owner), &mut text);
    let text = text.expect("MASTER_KEY does not decrypt KEY");
    let pkcs8 = BASE64_STANDARD.decode(text).expect("base64");
    Ed25519KeyPair::from_pkcs8(&pkcs8).expect("the signing key must be Ed25519")
}
