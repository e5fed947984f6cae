//! What the nonsense is thrown at, and what must hold afterwards.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    harness::{
        api::{Answer, Api},
        process::{Variables, run_ok},
        service::Service,
    },
    subscription_plans::minimal,
};

pub const PLANS: &str = "/subscription-plans";

/// How long an answer may take.
const AT_ONCE: Duration = Duration::from_millis(100);

/// A service with one plan, `target`, and a client that may do everything.
pub struct Target {
    pub service: Service,
    pub caller: Api,
    pub client_id: String,
    document: Value,
    before: String,
}

impl Target {
    pub async fn start() -> Self {
        // Without background work, which has its own reasons to write.
        let service = Service::start_with(|variables| {
            variables.insert("PERENNIAL_WORKERS", "0".to_owned());
            variables.insert("PERENNIAL_LOG", "debug".to_owned());
        })
        .await;
        let (_, client_id) = service.make_client(&[]);
        let caller = service.anonymous().with("client-id", &client_id);
        let made = caller.post(PLANS, &minimal("target").to_string()).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let document = run_ok(&Variables::new(), &["openapi"]);
        let before = state(&service).await;
        Self {
            service,
            caller,
            client_id,
            document: serde_json::from_str(&document).unwrap(),
            before,
        }
    }

    /// Takes what is there now for what must not change.
    pub async fn remember(&mut self) {
        self.before = state(&self.service).await;
    }

    /// The same call as another caller would send it.
    pub async fn refuses_of(
        &self,
        caller: &Api,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        expected: (u16, &str),
    ) -> Answer {
        let shown = String::from_utf8_lossy(
            &body.unwrap_or_default()[..body.map_or(0, |b| b.len().min(200))],
        )
        .into_owned();
        let shown = format!("{method} {} {shown}", &path[..path.len().min(200)]);
        let mut quickest = Duration::MAX;
        let mut answer = None;
        // A machine that does something else as well may be late once; a slow path is late every time.
        for _ in 0..4 {
            let begun = Instant::now();
            let body = body.map(<[u8]>::to_vec);
            answer = Some(caller.try_send(method.clone(), path, body).await.unwrap());
            quickest = quickest.min(begun.elapsed());
            if quickest <= AT_ONCE {
                break;
            }
        }
        let answer = answer.unwrap();
        assert!(quickest <= AT_ONCE, "{shown}: took {quickest:?}");
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            expected,
            "{shown}: {}",
            answer.text
        );
        self.is_documented(&method, path, answer.status);
        shows_nothing_of_the_inside(&answer.text);
        answer
    }

    /// Sends a request that must be refused with this status and code.
    pub async fn refuses(
        &self,
        method: Method,
        path: &str,
        body: Option<&[u8]>,
        expected: (u16, &str),
    ) -> Answer {
        let json = self.caller.with("content-type", "application/json");
        self.refuses_of(&json, method, path, body, expected).await
    }

    /// The same, of a plan that is to be made.
    pub async fn refuses_plan(&self, body: impl AsRef<[u8]>, expected: (u16, &str)) -> Answer {
        self.refuses(Method::POST, PLANS, Some(body.as_ref()), expected)
            .await
    }

    /// The same, of a change to the plan that is there.
    pub async fn refuses_change(&self, body: impl AsRef<[u8]>, expected: (u16, &str)) -> Answer {
        self.refuses(
            Method::PUT,
            "/subscription-plans/target",
            Some(body.as_ref()),
            expected,
        )
        .await
    }

    /// A plan with one field replaced by raw JSON must be refused, at that field, with this code; and so
    /// must the change of that field.
    pub async fn refuses_field(&self, field: &str, raw: &str, code: &str) {
        let answer = self.refuses_plan(plan_with(field, raw), (422, code)).await;
        let first = answer.field_errors()[0].clone();
        assert!(first.starts_with(&format!("/{field}")), "{field}: {first}");
        if field != "slug" && field != "currency" {
            let body = format!(r#"{{"{field}": {raw}}}"#);
            self.refuses_change(body, (422, code)).await;
        }
    }

    /// A plan with one field replaced by raw JSON is taken; answers it.
    pub async fn takes_field(&self, field: &str, raw: &str) -> Value {
        let slug: u64 = u64::from_le_bytes(perennial::randomness::Randomness.bytes());
        let body = plan_with(field, raw).replace("\"x\"", &format!("\"s{slug:x}\""));
        let answer = self.caller.post(PLANS, &body).await;
        assert_eq!(answer.status, 201, "{field} {raw}: {}", answer.text);
        answer.json()
    }

    /// The status is one that the document lists for this endpoint, if it is one.
    fn is_documented(&self, method: &Method, path: &str, status: u16) {
        // Methods are in capitals; `get` is another one, and none of ours.
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
        let operation = &self.document["paths"][route][method.as_str().to_lowercase()];
        if let Some(responses) = operation["responses"].as_object() {
            assert!(
                responses.contains_key(&status.to_string()),
                "{method} {route} answers {status}, which the document does not list"
            );
        }
    }

    /// Sends bytes as they are, and answers what came back until the connection ended or fell silent.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // Whoever is refused half-way cannot send the rest.
        let _ = stream.write_all(bytes).await;
        read_until_silent(&mut stream).await
    }

    pub async fn connect(&self) -> TcpStream {
        let address = self.service.server.url.replace("http://", "");
        TcpStream::connect(address).await.unwrap()
    }

    /// Nothing in the database has changed since the start, and the service still serves.
    pub async fn is_unchanged(&self) {
        assert_eq!(state(&self.service).await, self.before);
        let answer = self.caller.get("/subscription-plans/target").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
}

/// What came back until the connection ended or was silent for a moment.
pub async fn read_until_silent(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    let patience = Duration::from_millis(500);
    while let Ok(Ok(length @ 1..)) = tokio::time::timeout(patience, stream.read(&mut part)).await {
        all.extend_from_slice(&part[..length]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// A plan as JSON text, with one field as raw text: there is no other way to write 1e400.
pub fn plan_with(field: &str, raw: &str) -> String {
    let plan = minimal("x");
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

pub fn shows_nothing_of_the_inside(text: &str) {
    for inside in [
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
        assert!(!text.contains(inside), "{inside}: {text}");
    }
}

/// All rows of all tables, in short.
async fn state(service: &Service) -> String {
    let client = service.database.connect().await;
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
            "SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} AS t"
        );
        let row = client.query_one(&query, &[]).await.unwrap();
        let (count, hash): (i64, Option<String>) = (row.get(0), row.get(1));
        state += &format!("{table} {count} {hash:?}\n");
    }
    state
}
