//! The interface within the test's own process, with a clock for subscriptions that stands still until it is set.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use axum::{
    body::Body,
    extract::Request,
    http::{Method, header::CONTENT_TYPE},
};
use jiff::Timestamp;
use perennial::{
    app::App,
    clock::Clock,
    config::{Config, MasterKey, Reader},
    http::{
        peer::{Peer, Sender},
        serve::Answers,
    },
    router::Interface,
    subscriptions::lifecycle::move_due,
};
use serde_json::Value;

use super::process::{MASTER_KEY, Variables};

/// The interface, and a client of it.
pub struct Held {
    pub app: Arc<App>,
    interface: Interface,
    client: String,
}

impl Held {
    pub async fn start(variables: &Variables, client: &str, now: Timestamp) -> Self {
        let mut variables = variables.clone();
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "http://perennial.example".to_owned(),
        );
        let given = variables.iter();
        let mut reader =
            Reader::new(given.map(|(name, value)| ((*name).to_owned(), value.clone())));
        let config = Config::read(&mut reader).unwrap();
        let master = MasterKey::parse(MASTER_KEY).unwrap();
        let mut app = App::new(&config, &master, Clock::System).unwrap();
        app.billing = Clock::held(now);
        let app = Arc::new(app);
        app.db.opened().await;
        Self {
            interface: Interface::new(&app).unwrap(),
            app,
            client: client.to_owned(),
        }
    }

    /// From now on it is this instant.
    pub fn set(&self, now: Timestamp) {
        self.app.billing.set(now.as_microsecond());
    }

    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "perennial.example")
            .header("client-id", &self.client)
            .header(CONTENT_TYPE, "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = Box::new(request.body(body).unwrap());
        let sender = Sender {
            peer: Peer(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            named: None,
        };
        let answer = self.interface.answer(request, sender).await;
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), 1_000_000)
            .await
            .unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}");
        body
    }

    pub async fn post(&self, path: &str, body: &Value) -> Value {
        let (status, made) = self.call(Method::POST, path, Some(body)).await;
        assert_eq!(status, 201, "{path} {body}: {made}");
        made
    }

    /// One batch of a worker; answers how many it moved. One that is killed has done nothing.
    pub async fn work(&self, limit: i64, killed: bool) -> usize {
        let mut connection = self.app.db.home().unwrap().connection().await.unwrap();
        let tx = connection.begin();
        let home = self.app.db.home().unwrap();
        let when = (self.app.ids, self.app.billing.now());
        let moved = move_due(home, "home", &tx, when, limit).await.unwrap();
        if !killed {
            tx.commit().await.unwrap();
        }
        moved
    }

    /// Everything that is due by now.
    pub async fn catch_up(&self) -> usize {
        let mut all = 0;
        loop {
            match self.work(1_000, false).await {
                0 => return all,
                moved => all += moved,
            }
        }
    }
}
