//! Signatures, verified by the official Standard Webhooks packages of npm, PyPI and crates.io.

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, Stdio},
};

use axum::http::HeaderMap;
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use perennial::{
    randomness::Randomness,
    webhooks::signature::{WebhookSecret, signature_headers},
};
use secrecy::ExposeSecret;
use serde::Serialize;

use crate::architecture::crate_path;

/// The libraries accept times that are up to five minutes away.
const TOLERANCE_SECONDS: i64 = 300;
const RANDOM_BODIES: usize = 40;

/// A request, and the secret that its receiver has.
#[derive(Serialize)]
struct SignedMessage {
    secret: String,
    headers: BTreeMap<&'static str, String>,
    body: String,
    #[serde(skip)]
    is_valid: bool,
    #[serde(skip)]
    case: &'static str,
}

fn text(secret: &WebhookSecret) -> String {
    secret.to_text().expose_secret().to_owned()
}

/// Returns valid and invalid messages with this body.
fn messages(body: &str, secret: &WebhookSecret) -> Vec<SignedMessage> {
    let now = Timestamp::now().as_second();
    let other = WebhookSecret::generate(Randomness);
    let both = [other.clone(), secret.clone()];
    let one = std::slice::from_ref(secret);
    let message = |case, is_valid, secrets: &[WebhookSecret], receiver, at| {
        let headers = signature_headers(secrets, "evt_1", at, body.as_bytes());
        SignedMessage {
            secret: text(receiver),
            headers: headers.into_iter().collect(),
            body: body.to_owned(),
            is_valid,
            case,
        }
    };
    let late = now - TOLERANCE_SECONDS - 60;
    let early = now + TOLERANCE_SECONDS + 60;
    let mut changed_body = message("changed body", false, one, secret, now);
    changed_body.body.push(' ');
    let mut changed_id = message("changed id", false, one, secret, now);
    changed_id.headers.insert("webhook-id", "evt_2".to_owned());
    let mut changed_time = message("changed time", false, one, secret, now);
    let time = (now + 1).to_string();
    changed_time.headers.insert("webhook-timestamp", time);
    vec![
        message("one secret", true, one, secret, now),
        message("rotation, old secret", true, &both, secret, now),
        message("rotation, new secret", true, &both, &other, now),
        message("wrong secret", false, one, &other, now),
        message("old", false, one, secret, late),
        message("from the future", false, one, secret, early),
        changed_body,
        changed_id,
        changed_time,
    ]
}

fn random_body() -> String {
    let [high, low] = Randomness.bytes();
    let length = usize::from(u16::from_be_bytes([high % 4, low]));
    let characters = (0..length).map(|_| u32::from_le_bytes(Randomness.bytes()) % 0x11_0000);
    characters.filter_map(char::from_u32).collect()
}

fn all_messages() -> Vec<SignedMessage> {
    let mut bodies: Vec<String> = (0..RANDOM_BODIES).map(|_| random_body()).collect();
    let fixed = ["", "{}", " ", "\0", "{\"name\": \"Zoë 🌱\u{2028}\"}\r\n"];
    bodies.extend(fixed.map(str::to_owned));
    bodies.push("ü".repeat(1024 * 1024 / "ü".len()));
    let mut all = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        let secret = match index % 3 {
            0 => WebhookSecret::generate(Randomness),
            1 => secret_of(&Randomness.bytes::<24>()),
            _ => secret_of(&Randomness.bytes::<64>()),
        };
        all.extend(messages(body, &secret));
    }
    all
}

fn secret_of(key: &[u8]) -> WebhookSecret {
    WebhookSecret::parse(&format!("whsec_{}", BASE64_STANDARD.encode(key))).unwrap()
}

/// Returns which messages a script accepts.
fn run(program: &str, script: &str, messages: &[SignedMessage]) -> Vec<bool> {
    let mut child = Command::new(program)
        .arg(crate_path("tests/webhook_libraries").join(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}; run `just setup`"));
    let input = serde_json::to_vec(messages).unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn assert_verified(library: &str, messages: &[SignedMessage], accepted: &[bool]) {
    assert_eq!(messages.len(), accepted.len());
    for (message, is_accepted) in messages.iter().zip(accepted) {
        let SignedMessage { case, body, .. } = message;
        let length = body.len();
        assert_eq!(
            *is_accepted, message.is_valid,
            "{library}: {case}, body of {length} bytes"
        );
    }
}

#[test]
fn npm_package_verifies_signatures() {
    let messages = all_messages();
    assert_verified("npm", &messages, &run("node", "verify.mjs", &messages));
}

#[test]
fn pypi_package_verifies_signatures() {
    let messages = all_messages();
    let python = crate_path("../../.tools/venv/bin/python");
    let accepted = run(python.to_str().unwrap(), "verify.py", &messages);
    assert_verified("PyPI", &messages, &accepted);
}

#[test]
fn crate_verifies_signatures() {
    let messages = all_messages();
    let is_accepted = |message: &SignedMessage| {
        let headers = message.headers.iter();
        let headers: HeaderMap = headers
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        let webhook = standardwebhooks::Webhook::new(&message.secret).unwrap();
        webhook.verify(message.body.as_bytes(), &headers).is_ok()
    };
    let accepted: Vec<bool> = messages.iter().map(is_accepted).collect();
    assert_verified("crate", &messages, &accepted);
}
