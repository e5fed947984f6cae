//! OpenID providers: a real one, and one that says whatever a test wants it to.

use std::{
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use jsonwebtoken::{Algorithm, EncodingKey, jwk::Jwk};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{cluster::is_root, free_port};
use crate::architecture::source;

/// npm's `oidc-provider`, as a process of its own; `tests/provider/server.mjs` says what it can be told.
pub struct OpenIdProvider {
    child: Child,
    pub issuer: String,
}

impl OpenIdProvider {
    /// Starts one and waits until it answers. A process that does not is ended, and another one started: what
    /// is tested is what we make of a provider, not how one starts.
    pub async fn start() -> Self {
        for _ in 0..3 {
            let provider = Self::spawn(free_port());
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(15) {
                let counts = format!("{}/test/counts", provider.issuer);
                if reqwest::get(counts)
                    .await
                    .is_ok_and(|answer| answer.status() == 200)
                {
                    return provider;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            eprintln!("the provider at {} does not answer", provider.issuer);
        }
        panic!("no provider answers");
    }

    fn spawn(port: u16) -> Self {
        let script = source("tests/provider/server.mjs");
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", "node"]);
            command
        } else {
            Command::new("node")
        };
        let child = command
            .arg(script)
            .arg(port.to_string())
            .current_dir("/")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            issuer: format!("http://127.0.0.1:{port}"),
        }
    }

    /// A user's access token, as the provider makes it.
    pub async fn mint(&self, wish: Value) -> String {
        let url = format!("{}/test/mint", self.issuer);
        let answer = reqwest::Client::new().post(url).json(&wish).send().await;
        let minted: Value = answer.unwrap().json().await.unwrap();
        minted["token"].as_str().unwrap().to_owned()
    }

    /// New keys under the old names.
    pub async fn rotate(&self) {
        let rotated = reqwest::get(format!("{}/test/rotate", self.issuer)).await;
        assert!(rotated.unwrap().status().is_success());
    }

    /// How often it was asked for its keys.
    pub async fn key_fetches(&self) -> u64 {
        let counts = reqwest::get(format!("{}/test/counts", self.issuer)).await;
        let counts: Value = counts.unwrap().json().await.unwrap();
        counts["keys"].as_u64().unwrap()
    }

    pub fn stop(&mut self) {
        // The process that we started is `runuser`; what it started ends with it when told so.
        let id = self.child.id().to_string();
        let _ = Command::new("pkill").args(["-TERM", "-P", &id]).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for OpenIdProvider {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An issuer that signs whatever it is given, and answers whatever it is told to: what no real provider
/// would do.
pub struct Forger {
    pub issuer: String,
    key: EncodingKey,
    /// What it publishes.
    pub keys: Value,
    answers: Arc<Mutex<Answers>>,
}

/// How a forger answers.
#[derive(Clone)]
pub enum Answers {
    /// As it should: this is its set of keys.
    Keys(Value),
    /// As it should, and with this status and body where it is asked about a user.
    Userinfo(Value, u16, String),
    /// With this body, whatever was asked.
    Body(&'static str),
    /// By sending on to this address.
    Elsewhere(String),
    /// Without end.
    Endlessly,
    /// Not at all.
    Never,
}

impl Forger {
    pub async fn start() -> Self {
        let made = Command::new("openssl")
            .args(["genpkey", "-algorithm", "ed25519", "-outform", "DER"])
            .output()
            .unwrap();
        let key = EncodingKey::from_ed_der(&made.stdout);
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::EdDSA).unwrap();
        jwk.common.key_id = Some("own".to_owned());
        let keys = json!({"keys": [jwk]});
        let answers = Arc::new(Mutex::new(Answers::Keys(keys.clone())));
        let port = free_port();
        let issuer = format!("http://127.0.0.1:{port}");
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (told, own) = (answers.clone(), issuer.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (told, own) = (told.lock().unwrap().clone(), own.clone());
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    let length = stream.read(&mut request).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&request[..length]).into_owned();
                    let discovery = json!({
                        "issuer": own,
                        "jwks_uri": format!("{own}/jwks"),
                        "userinfo_endpoint": format!("{own}/me"),
                    });
                    let asked = request.split(' ').nth(1).unwrap_or_default();
                    let (head, body) = match (told, asked) {
                        (Answers::Never, _) => {
                            tokio::time::sleep(Duration::from_mins(1)).await;
                            return;
                        }
                        (Answers::Endlessly, _) => {
                            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                            while stream.write_all(&[b' '; 4096]).await.is_ok() {}
                            return;
                        }
                        (Answers::Elsewhere(other), path) => (
                            format!("302 Found\r\nlocation: {other}{path}"),
                            String::new(),
                        ),
                        (Answers::Body(body), _) => ("200 OK".to_owned(), body.to_owned()),
                        (Answers::Userinfo(_, status, body), "/me") => {
                            (format!("{status} So"), body)
                        }
                        (Answers::Keys(keys) | Answers::Userinfo(keys, ..), "/jwks") => {
                            ("200 OK".to_owned(), keys.to_string())
                        }
                        (
                            Answers::Keys(_) | Answers::Userinfo(..),
                            "/.well-known/openid-configuration",
                        ) => ("200 OK".to_owned(), discovery.to_string()),
                        _ => ("404 Not Found".to_owned(), String::new()),
                    };
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self {
            issuer,
            key,
            keys,
            answers,
        }
    }

    /// How it answers from now on.
    pub fn answer(&self, answers: Answers) {
        *self.answers.lock().unwrap() = answers;
    }

    /// Signs a header and claims, given as text: there is no other way to say a thing twice.
    pub fn sign(&self, header: &str, claims: &str) -> String {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
        let message = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, Algorithm::EdDSA);
        format!("{message}.{}", signature.unwrap())
    }

    /// A good token with one claim changed, or, with `None`, left out.
    pub fn token_with(&self, claim: &str, value: Option<&str>) -> String {
        let mut claims = vec![
            ("iss", json!(self.issuer).to_string()),
            ("sub", r#""u1""#.to_owned()),
            ("aud", r#""product""#.to_owned()),
            (
                "exp",
                (jiff::Timestamp::now().as_second() + 300).to_string(),
            ),
            ("email", r#""a@example.com""#.to_owned()),
            ("email_verified", "true".to_owned()),
        ];
        claims.retain(|(name, _)| *name != claim);
        claims.extend(value.map(|value| (claim, value.to_owned())));
        let claims: Vec<String> = claims
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        self.sign(HEADER, &format!("{{{}}}", claims.join(",")))
    }
}

/// The header of a good token.
pub const HEADER: &str = r#"{"alg":"EdDSA","typ":"at+jwt","kid":"own"}"#;
