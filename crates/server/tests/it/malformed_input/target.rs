//! The service that malformed input is sent to, and what must hold afterwards.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    harness::{
        api::{ApiClient, ApiResponse},
        database::Database,
        in_process::InProcessServer,
        process::{Server, Variables, run_ok},
        service::Service,
    },
    subscription_plans::minimal_plan,
};

pub const PLANS: &str = "/subscription-plans";

/// Far above the usual few milliseconds, because other load may delay every attempt.
const MAX_RESPONSE_TIME: Duration = Duration::from_secs(1);

/// A service with one plan, `target`, and a client with all scopes.
pub struct Target<S = Server> {
    pub service: Service<S>,
    pub api: ApiClient,
    pub client_id: String,
    openapi: Value,
    initial_state: String,
}

impl Target {
    pub async fn start() -> Self {
        Self::on(Service::start_with(configure).await).await
    }
}

impl Target<Arc<InProcessServer>> {
    pub async fn start_in_process() -> Self {
        Self::on(Service::start_in_process_with(configure).await).await
    }
}

fn configure(variables: &mut Variables) {
    // Background workers would change rows.
    variables.insert("PERENNIAL_WORKERS", "0".to_owned());
    variables.insert("PERENNIAL_LOG", "debug".to_owned());
    // One test opens this many from one address.
    variables.insert("PERENNIAL_CONNECTIONS_PER_PEER", "1000".to_owned());
}

impl<S> Target<S> {
    async fn on(service: Service<S>) -> Self {
        let (_, client_id) = service.create_client(&[]);
        let api = service.anonymous().with("client-id", &client_id);
        api.create(PLANS, &minimal_plan("target")).await;
        let openapi = run_ok(&Variables::new(), &["openapi"]);
        let initial_state = state(&service.database).await;
        Self {
            service,
            api,
            client_id,
            openapi: serde_json::from_str(&openapi).unwrap(),
            initial_state,
        }
    }

    /// Makes the current rows the ones that must not change.
    pub async fn save_state(&mut self) {
        self.initial_state = state(&self.service.database).await;
    }

    /// Asserts that a request of this client is rejected with this status and code.
    pub async fn assert_rejects_as(
        &self,
        api: &ApiClient,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        expected: (u16, &str),
    ) -> ApiResponse {
        let shown = String::from_utf8_lossy(
            &body.unwrap_or_default()[..body.map_or(0, |b| b.len().min(200))],
        )
        .into_owned();
        let shown = format!("{method} {} {shown}", &path[..path.len().min(200)]);
        let mut fastest = Duration::MAX;
        let mut response = None;
        // The fastest of many attempts, because other load may delay some of them.
        for _ in 0..20 {
            let started = Instant::now();
            let body = body.map(<[u8]>::to_vec);
            response = Some(api.try_send(method.clone(), path, body).await.unwrap());
            fastest = fastest.min(started.elapsed());
            if fastest <= MAX_RESPONSE_TIME {
                break;
            }
        }
        let response = response.unwrap();
        assert!(fastest <= MAX_RESPONSE_TIME, "{shown}: took {fastest:?}");
        assert_eq!(
            (response.status, response.problem().as_str()),
            expected,
            "{shown}: {}",
            response.text
        );
        self.assert_documented(&method, path, response.status);
        assert_no_internals(&response.text);
        response
    }

    /// Asserts that a JSON request is rejected with this status and code.
    pub async fn assert_rejects(
        &self,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        expected: (u16, &str),
    ) -> ApiResponse {
        let json = self.api.with("content-type", "application/json");
        self.assert_rejects_as(&json, method, path, body, expected)
            .await
    }

    /// Asserts that a request to create a plan is rejected.
    pub async fn assert_rejects_plan(
        &self,
        body: impl AsRef<[u8]>,
        expected: (u16, &str),
    ) -> ApiResponse {
        self.assert_rejects(Method::POST, PLANS, Some(body.as_ref()), expected)
            .await
    }

    /// Asserts that an update of the plan `target` is rejected.
    pub async fn assert_rejects_update(
        &self,
        body: impl AsRef<[u8]>,
        expected: (u16, &str),
    ) -> ApiResponse {
        self.assert_rejects(
            Method::PUT,
            "/subscription-plans/target",
            Some(body.as_ref()),
            expected,
        )
        .await
    }

    /// Asserts that a plan with one field replaced by raw JSON is rejected with this code at that field, and
    /// so is an update of the field.
    pub async fn assert_rejects_field(&self, field: &str, raw: &str, code: &str) {
        let response = self
            .assert_rejects_plan(plan_with(field, raw), (422, code))
            .await;
        let errors = response.field_errors();
        let pointer = format!("/{field}");
        let all_at_field = errors.iter().all(|error| error.starts_with(&pointer));
        assert!(!errors.is_empty() && all_at_field, "{field}: {errors:?}");
        if field != "slug" && field != "currency" {
            let body = format!(r#"{{"{field}": {raw}}}"#);
            self.assert_rejects_update(body, (422, code)).await;
        }
    }

    /// Creates a plan with one field replaced by raw JSON and returns it.
    pub async fn create_with_field(&self, field: &str, raw: &str) -> Value {
        let slug: u64 = u64::from_le_bytes(perennial::randomness::Randomness.bytes());
        let body = plan_with(field, raw).replace("\"x\"", &format!("\"s{slug:x}\""));
        let response = self.api.post(PLANS, &body).await;
        assert_eq!(response.status, 201, "{field} {raw}: {}", response.text);
        response.json()
    }

    /// Asserts that the OpenAPI document lists the status for the endpoint, if the path is one.
    fn assert_documented(&self, method: &Method, path: &str, status: u16) {
        // Methods are case-sensitive: `get` is not GET.
        if method
            .as_str()
            .bytes()
            .any(|byte| byte.is_ascii_lowercase())
        {
            return;
        }
        let path = path.split('?').next().unwrap();
        let segments = path.matches('/').count();
        let route = match (path, segments) {
            (PLANS, _) => PLANS,
            (path, 2) if path.starts_with("/subscription-plans/") => "/subscription-plans/{slug}",
            ("/subscriptions", _) => "/subscriptions",
            (path, 2) if path.starts_with("/subscriptions/") => "/subscriptions/{id}",
            (path, 2) if path.starts_with("/subscription-payments/") => {
                "/subscription-payments/{payment_id}"
            }
            _ => return,
        };
        let operation = &self.openapi["paths"][route][method.as_str().to_lowercase()];
        if let Some(responses) = operation["responses"].as_object() {
            assert!(
                responses.contains_key(&status.to_string()),
                "{method} {route} returns {status}, which is not documented"
            );
        }
    }

    /// Asserts that no row has changed since the start, and that the service still responds.
    pub async fn assert_unchanged(&self) {
        assert_eq!(state(&self.service.database).await, self.initial_state);
        let response = self.api.get("/subscription-plans/target").await;
        assert_eq!(response.status, 200, "{}", response.text);
    }
}

impl Target {
    /// Sends bytes unchanged and returns the response.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The server may respond and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        read_until_idle(&mut stream).await
    }

    pub async fn connect(&self) -> TcpStream {
        let address = self.service.server.url.replace("http://", "");
        TcpStream::connect(address).await.unwrap()
    }
}

/// Reads until the connection is closed or idle for 500 ms.
pub async fn read_until_idle(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    let idle = Duration::from_millis(500);
    while let Ok(Ok(length @ 1..)) = tokio::time::timeout(idle, stream.read(&mut buffer)).await {
        all.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns a plan as JSON text with one field as raw text, because a JSON library cannot represent 1e400.
pub fn plan_with(field: &str, raw: &str) -> String {
    let plan = minimal_plan("x");
    let mut parts: Vec<String> = plan
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != field)
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    parts.push(format!("\"{field}\":{raw}"));
    format!("{{{}}}", parts.join(","))
}

/// Asserts that a response reveals no internals.
pub fn assert_no_internals(text: &str) {
    for internal in [
        "panic",
        ".rs",
        "postgres",
        "SQLSTATE",
        "relation ",
        "tokio",
        "/root",
        "src/",
        "stack",
    ] {
        assert!(!text.contains(internal), "{internal}: {text}");
    }
}

/// Returns the row count and a hash of every table.
pub async fn state(database: &Database) -> String {
    hash_rows(database, "true").await
}

/// Returns the row count and a hash of the rows of one tenant, of every table.
pub async fn tenant_state(database: &Database, tenant: &str) -> String {
    let uuid = tenant.rsplit('_').next().unwrap();
    let of_tenant = format!("to_jsonb(t) ->> 'tenant_id' = '{uuid}'::uuid::text");
    hash_rows(database, &of_tenant).await
}

async fn hash_rows(database: &Database, condition: &str) -> String {
    let client = database.connect().await;
    let tables = client
        .query(
            "SELECT relname::text FROM pg_class
             WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
             ORDER BY relname",
            &[],
        )
        .await
        .unwrap();
    assert!(tables.len() > 5);
    let mut state = String::new();
    for row in tables {
        let table: &str = row.get(0);
        let query = format!(
            "SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} AS t WHERE {condition}"
        );
        let row = client.query_one(&query, &[]).await.unwrap();
        let (count, hash): (i64, Option<String>) = (row.get(0), row.get(1));
        state += &format!("{table} {count} {hash:?}\n");
    }
    state
}
