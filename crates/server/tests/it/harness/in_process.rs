//! The API in the test's own process, without a socket and without background workers.
//!
//! Faster than a server process, and its billing clock can be set. What depends on sockets, logs,
//! metrics or workers needs [`super::process::Server`].

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    http::{
        HeaderMap, Method, Uri,
        header::{CONTENT_LENGTH, HOST},
    },
};
use jiff::Timestamp;
use perennial::{
    app::App,
    auth::tokens::ensure_signing_key,
    clock::Clock,
    config::{Config, EnvReader},
    http::{client_ip::TrustedProxies, serve::RequestHandler},
    router::ApiService,
    subscriptions::{apply_due_transitions, due_sql},
};
use url::Position;

use super::{
    api::ApiResponse,
    client::system_context,
    master_key::derived_keys,
    process::{MASTER_KEY, Variables},
    wait_until,
};

/// The largest response that is read.
const MAX_RESPONSE: usize = 16 << 20;

pub struct InProcessServer {
    pub app: Arc<App>,
    service: ApiService,
    proxies: TrustedProxies,
}

impl InProcessServer {
    pub async fn start(variables: &Variables) -> Self {
        Self::start_with(variables, |_| {}).await
    }

    /// Starts with a fixed billing clock.
    pub async fn start_at(variables: &Variables, now: Timestamp) -> Self {
        Self::start_with(variables, |app| app.billing_clock = Clock::fixed(now)).await
    }

    /// Starts with a fixed clock for sessions and tokens, which `app.clock` sets.
    pub async fn start_with_fixed_clock(variables: &Variables) -> Self {
        let clock = Clock::fixed(Timestamp::now());
        let change = |app: &mut App| {
            app.clock = clock;
            app.authenticator.clock = clock;
        };
        Self::start_with(variables, change).await
    }

    async fn start_with(variables: &Variables, change: impl FnOnce(&mut App)) -> Self {
        let config = read_config(variables);
        let keys = derived_keys(MASTER_KEY);
        let mut app = App::new(&config, &keys, Clock::System).unwrap();
        change(&mut app);
        let app = Arc::new(app);
        let mut home = app.db.home().unwrap().connection().await.unwrap();
        ensure_signing_key(&mut home, system_context(), &keys)
            .await
            .unwrap();
        drop(home);
        app.start_caches();
        tokio::spawn(app.clone().poll_billing_clock());
        app.db.wait_until_connected().await;
        Self {
            service: ApiService::new(&app).unwrap(),
            app,
            proxies: TrustedProxies::new(&config.http.trusted_proxies),
        }
    }

    /// Handles a request as the listener would, from 127.0.0.1.
    pub async fn handle(
        &self,
        method: Method,
        path: &str,
        headers: &HeaderMap,
        body: Option<Vec<u8>>,
    ) -> ApiResponse {
        // Normalizes the path as an HTTP client would.
        let url = reqwest::Url::parse(&format!("http://perennial.example{path}")).unwrap();
        let uri: Uri = url[Position::BeforePath..Position::AfterQuery]
            .parse()
            .unwrap();
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers.clone();
        let headers = request.headers_mut();
        if !headers.contains_key(HOST) {
            headers.insert(HOST, "perennial.example".parse().unwrap());
        }
        if let Some(body) = body {
            headers.insert(CONTENT_LENGTH, body.len().into());
            *request.body_mut() = Body::from(body);
        }
        let remote = self
            .proxies
            .remote_addr(Ipv4Addr::LOCALHOST.into(), request.headers());
        let response = self.service.handle(Box::new(request), remote).await;
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, MAX_RESPONSE).await.unwrap();
        ApiResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            // Pictures are no text.
            text: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    /// Sets the fixed billing clock.
    pub fn set_time(&self, now: Timestamp) {
        self.app.billing_clock.set(now.as_microsecond());
    }

    /// Applies one batch of due transitions, as a worker does, and returns how many. A killed
    /// worker rolls back.
    pub async fn apply_transitions(&self, limit: i64, killed: bool) -> usize {
        let home = self.app.db.home().unwrap();
        let mut connection = home.connection().await.unwrap();
        let tx = connection.begin();
        let when = (self.app.ids, self.app.billing_clock.now());
        let applied = apply_due_transitions(home, "home", &tx, when, limit)
            .await
            .unwrap();
        if !killed {
            tx.commit().await.unwrap();
        }
        applied
    }

    /// Applies all due transitions. Rows that a killed worker had locked are skipped until its
    /// rollback arrives.
    pub async fn catch_up(&self) {
        let home = self.app.db.home().unwrap();
        let limit = Duration::from_secs(10);
        wait_until("no transition is due", limit, async || {
            while self.apply_transitions(1_000, false).await > 0 {}
            let connection = home.connection().await.unwrap();
            let now = self.app.billing_clock.now();
            let oldest = due_sql::oldest_due_at(home, &connection, now).await;
            oldest.unwrap().is_none()
        })
        .await;
    }
}

/// Reads the configuration with a public URL that does not depend on a port.
pub fn read_config(variables: &Variables) -> Config {
    let mut variables = variables.clone();
    variables
        .entry("PERENNIAL_PUBLIC_URL")
        .or_insert_with(|| "http://perennial.example".to_owned());
    let variables = variables.iter();
    let variables = variables.map(|(name, value)| ((*name).to_owned(), value.clone()));
    Config::read(&mut EnvReader::new(variables)).unwrap()
}
