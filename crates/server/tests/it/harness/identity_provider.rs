//! Identity providers: a real OpenID provider, and a fake issuer that misbehaves on request.

use std::{
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, jwk::Jwk};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::{TcpListener, TcpStream, unix::pipe},
    task::JoinHandle,
};

use super::{
    child::{ChildProcess, unprivileged_command},
    process::{Variables, run_ok},
    reserve_port,
};
use crate::architecture::crate_path;

/// Starting Node.js can take a while on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_STARTS: usize = 4;

/// npm's `oidc-provider` as a child process; see `tests/provider/server.mjs`.
pub struct OpenIdProvider {
    _child: ChildProcess,
    // Kept open, because the provider may print more.
    _output: Lines<BufReader<pipe::Receiver>>,
    pub issuer: String,
}

impl OpenIdProvider {
    /// Starts a provider and waits until it listens. Node.js 20 rarely hangs at its start, asleep and before
    /// it listens, so one that takes too long is replaced.
    pub async fn start() -> Self {
        let mut last = None;
        for _ in 0..MAX_STARTS {
            match Self::try_start().await {
                Ok(provider) => return provider,
                Err(mut child) => last = Some(child.describe()),
            }
        }
        panic!("no provider listens: {last:?}");
    }

    async fn try_start() -> Result<Self, ChildProcess> {
        let port = reserve_port();
        let mut command = unprivileged_command("postgres", "node");
        command
            .arg(crate_path("tests/provider/server.mjs"))
            .arg(port.to_string())
            .current_dir("/")
            .stdout(Stdio::piped());
        let mut child = ChildProcess::spawn(&mut command);
        let output = pipe::Receiver::from_owned_fd(child.take_stdout().into()).unwrap();
        let mut output = BufReader::new(output).lines();
        let is_ready = async {
            while let Some(line) = output.next_line().await.unwrap() {
                if line == "ready" {
                    return true;
                }
            }
            false
        };
        let is_ready = tokio::time::timeout(START_TIMEOUT, is_ready).await;
        if is_ready == Ok(false) {
            // Only an exit closes the output.
            child.wait();
        }
        if is_ready != Ok(true) {
            return Err(child);
        }
        Ok(Self {
            _child: child,
            _output: output,
            issuer: format!("http://127.0.0.1:{port}"),
        })
    }

    /// Returns a new access token; `server.mjs` lists the options.
    pub async fn mint(&self, options: Value) -> String {
        let url = format!("{}/test/mint", self.issuer);
        let response = reqwest::Client::new().post(url).json(&options).send().await;
        let minted: Value = response.unwrap().json().await.unwrap();
        minted["token"].as_str().unwrap().to_owned()
    }

    /// Sets who signs in at the authorization endpoint: `sub`, and the claims of the ID token. Without `sub`, sign-ins are refused.
    pub async fn set_login(&self, person: Value) {
        let url = format!("{}/test/login", self.issuer);
        let response = reqwest::Client::new().post(url).json(&person).send().await;
        assert!(response.unwrap().status().is_success());
    }

    /// Opens the URL of the authorization endpoint as a browser does, and returns the URL that the provider redirects to.
    pub async fn authorize(&self, url: &str) -> String {
        let policy = reqwest::redirect::Policy::none();
        let browser = reqwest::Client::builder().redirect(policy).build().unwrap();
        let mut url = url.to_owned();
        let mut cookies: Vec<String> = Vec::new();
        while url.starts_with(&self.issuer) {
            let request = browser.get(&url).header("cookie", cookies.join("; "));
            let response = request.send().await.unwrap();
            for cookie in response.headers().get_all("set-cookie") {
                let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
                cookies.push(cookie.to_owned());
            }
            let location = response.headers().get("location");
            let Some(location) = location else {
                panic!("{url}: {}", response.text().await.unwrap());
            };
            let location = location.to_str().unwrap();
            url = reqwest::Url::parse(&url)
                .unwrap()
                .join(location)
                .unwrap()
                .into();
        }
        url
    }

    /// Replaces all keys under their old key ids.
    pub async fn rotate(&self) {
        let rotated = reqwest::get(format!("{}/test/rotate", self.issuer)).await;
        assert!(rotated.unwrap().status().is_success());
    }

    /// Returns how often its keys were fetched.
    pub async fn key_fetches(&self) -> u64 {
        let counts = reqwest::get(format!("{}/test/counts", self.issuer)).await;
        let counts: Value = counts.unwrap().json().await.unwrap();
        counts["keys"].as_u64().unwrap()
    }
}

/// An issuer that signs any claims and responds in any way, as no real provider would.
pub struct FakeIssuer {
    pub issuer: String,
    key: EncodingKey,
    /// The JWK set with its public key.
    pub keys: Value,
    behavior: Arc<Mutex<IssuerBehavior>>,
    accepting: JoinHandle<()>,
}

/// How a [`FakeIssuer`] responds.
#[derive(Clone)]
pub enum IssuerBehavior {
    /// Correctly, with this JWK set.
    Keys(Value),
    /// Correctly, with this JWK set, and with this status and body at the userinfo endpoint.
    Userinfo(Value, u16, String),
    /// With this body for every path.
    Body(&'static str),
    /// With a redirect to this issuer.
    Redirect(String),
    EndlessBody,
    NoResponse,
}

impl FakeIssuer {
    pub async fn start() -> Self {
        let output = Command::new("openssl")
            .args(["genpkey", "-algorithm", "ed25519", "-outform", "DER"])
            .output()
            .unwrap();
        let key = EncodingKey::from_ed_der(&output.stdout);
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::EdDSA).unwrap();
        jwk.common.key_id = Some("own".to_owned());
        let keys = json!({"keys": [jwk]});
        let port = reserve_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let issuer = format!("http://127.0.0.1:{port}");
        let behavior = Arc::new(Mutex::new(IssuerBehavior::Keys(keys.clone())));
        let (own_issuer, own_behavior) = (issuer.clone(), behavior.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let behavior = own_behavior.lock().unwrap().clone();
                tokio::spawn(respond(stream, own_issuer.clone(), behavior));
            }
        });
        Self {
            issuer,
            key,
            keys,
            behavior,
            accepting,
        }
    }

    /// Closes its port: later connections are refused.
    pub async fn stop(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }

    /// Changes how it responds to later requests.
    pub fn set_behavior(&self, behavior: IssuerBehavior) {
        *self.behavior.lock().unwrap() = behavior;
    }

    /// Signs a header and claims. They are given as text, because a JSON value cannot contain a
    /// duplicate key.
    pub fn sign(&self, header: &str, claims: &str) -> String {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
        let message = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, Algorithm::EdDSA);
        format!("{message}.{}", signature.unwrap())
    }

    /// Returns the claims of a valid token.
    fn claims(&self) -> Map<String, Value> {
        let claims = json!({
            "iss": self.issuer, "sub": "u1", "aud": "product", "exp": Timestamp::now().as_second() + 300,
            "email": "a@example.com", "email_verified": true,
        });
        claims.as_object().unwrap().clone()
    }

    /// Returns a valid token with changed claims; null removes a claim.
    pub fn token(&self, changes: &Value) -> String {
        self.token_of_type(Some("at+jwt"), changes)
    }

    /// Returns a token with this `typ` in its header and changed claims; null removes a claim.
    pub fn token_of_type(&self, header_type: Option<&str>, changes: &Value) -> String {
        let mut header = json!({"alg": "EdDSA", "kid": "own"});
        if let Some(header_type) = header_type {
            header["typ"] = json!(header_type);
        }
        let mut claims = self.claims();
        claims.extend(changes.as_object().unwrap().clone());
        claims.retain(|_, value| !value.is_null());
        self.sign(&header.to_string(), &json!(claims).to_string())
    }

    /// Returns a valid token with one claim changed, or removed if `value` is `None`. The value is
    /// text, because it need not be valid JSON.
    pub fn token_with(&self, claim: &str, value: Option<&str>) -> String {
        let mut claims = self.claims();
        claims.remove(claim);
        let mut claims: Vec<String> = claims
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        claims.extend(value.map(|value| format!("\"{claim}\":{value}")));
        self.sign(TOKEN_HEADER, &format!("{{{}}}", claims.join(",")))
    }
}

/// Adds an identity provider that signs tokens for the audience `product`.
pub fn add_provider(variables: &Variables, issuer: &str) {
    let arguments = ["--issuer", issuer, "--audience", "product"];
    run_ok(variables, &[&["provider", "add"][..], &arguments].concat());
}

/// Reads one request and responds to it.
async fn respond(mut stream: TcpStream, issuer: String, behavior: IssuerBehavior) {
    let mut request = [0; 4096];
    let length = stream.read(&mut request).await.unwrap_or(0);
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let ok = |body: String| ("200 OK".to_owned(), body);
    let (head, body) = match (behavior, path) {
        (IssuerBehavior::NoResponse, _) => {
            tokio::time::sleep(Duration::from_mins(1)).await;
            return;
        }
        (IssuerBehavior::EndlessBody, _) => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b' '; 4096]).await.is_ok() {}
            return;
        }
        (IssuerBehavior::Redirect(other), path) => (
            format!("302 Found\r\nlocation: {other}{path}"),
            String::new(),
        ),
        (IssuerBehavior::Body(body), _) => ok(body.to_owned()),
        (IssuerBehavior::Userinfo(_, status, body), "/me") => (format!("{status} Status"), body),
        (IssuerBehavior::Keys(keys) | IssuerBehavior::Userinfo(keys, ..), "/jwks") => {
            ok(keys.to_string())
        }
        (_, "/.well-known/openid-configuration") => {
            let discovery = json!({
                "issuer": issuer,
                "jwks_uri": format!("{issuer}/jwks"),
                "userinfo_endpoint": format!("{issuer}/me"),
            });
            ok(discovery.to_string())
        }
        _ => ("404 Not Found".to_owned(), String::new()),
    };
    let length = body.len();
    let response =
        format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    let _ = stream.write_all(response.as_bytes()).await;
}

/// The header of a valid token.
pub const TOKEN_HEADER: &str = r#"{"alg":"EdDSA","typ":"at+jwt","kid":"own"}"#;
