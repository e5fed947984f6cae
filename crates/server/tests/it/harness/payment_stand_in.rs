//! Stand-ins of payment providers' APIs as child processes; see `tests/payment_providers/README.md`.

use std::{process::Stdio, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::unix::pipe,
};
use url::form_urlencoded;

use super::child::{ChildProcess, unprivileged_command};
use crate::architecture::crate_path;

/// Starting Node.js can take a while on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_STARTS: usize = 4;

/// The API key of all requests of tests to the stand-in.
pub const TEST_KEY: &str = "sk_test_harness";

/// A stand-in of Stripe or Lemon Squeezy.
pub struct PaymentStandIn {
    // It ends when its standard input closes, which the child keeps open.
    _child: ChildProcess,
    _output: Lines<BufReader<pipe::Receiver>>,
    pub url: String,
    http: reqwest::Client,
}

impl PaymentStandIn {
    /// Starts the stand-in in this folder of `tests/payment_providers`, and waits until it listens. Node.js 20 rarely hangs
    /// at its start, so one that takes too long is replaced.
    pub async fn start(folder: &str) -> Self {
        let mut last = None;
        for _ in 0..MAX_STARTS {
            match Self::try_start(folder).await {
                Ok(stand_in) => return stand_in,
                Err(mut child) => last = Some(child.describe()),
            }
        }
        panic!("no stand-in listens: {last:?}");
    }

    async fn try_start(folder: &str) -> Result<Self, ChildProcess> {
        let main = format!("tests/payment_providers/{folder}/main.mjs");
        let mut command = unprivileged_command("postgres", "node");
        command
            .arg(crate_path(&main))
            .args(["--port", "0"])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = ChildProcess::spawn(&mut command);
        let output = pipe::Receiver::from_owned_fd(child.take_stdout().into()).unwrap();
        let mut output = BufReader::new(output).lines();
        let first = tokio::time::timeout(START_TIMEOUT, output.next_line()).await;
        match first {
            Ok(Ok(Some(url))) => Ok(Self {
                _child: child,
                _output: output,
                url,
                http: reqwest::Client::builder()
                    .tls_certs_only([])
                    .build()
                    .unwrap(),
            }),
            _ => Err(child),
        }
    }

    /// Sends a request to the control API.
    pub async fn control(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("{}/_control{path}", self.url);
        let mut request = self.http.request(method, url);
        if !body.is_null() {
            request = request.body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let value: Value = response.json().await.unwrap();
        assert!(status.is_success(), "{path}: {value}");
        value
    }

    /// Sends a POST request to the control API.
    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.control(Method::POST, path, body).await
    }

    /// Sends a form to Stripe's API, and returns the object.
    pub async fn stripe(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self
            .http
            .post(format!("{}/v1/{path}", self.url))
            .bearer_auth(TEST_KEY)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let response = request.send().await.unwrap();
        let status = response.status();
        let value: Value = response.json().await.unwrap();
        assert!(status.is_success(), "{path}: {value}");
        value
    }

    /// Sends a DELETE request to the provider's API.
    pub async fn delete(&self, path: &str) {
        let url = format!("{}/v1/{path}", self.url);
        let response = self.http.delete(url).bearer_auth(TEST_KEY);
        let response = response
            .header("accept", "application/vnd.api+json")
            .send()
            .await;
        let status = response.unwrap().status();
        assert!(status.is_success(), "{path}: {status}");
    }

    /// Sends a GET request to Stripe's API, in the shapes before basil.
    pub async fn stripe_get(&self, path: &str) -> Value {
        let request = self
            .http
            .get(format!("{}/v1/{path}", self.url))
            .bearer_auth(TEST_KEY)
            .header("stripe-version", "2024-06-20");
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Sends a JSON:API document to Lemon Squeezy's API, and returns the resource.
    pub async fn lemon_squeezy(&self, method: Method, path: &str, data: Value) -> Value {
        let media_type = "application/vnd.api+json";
        let request = self
            .http
            .request(method, format!("{}/v1/{path}", self.url))
            .bearer_auth(TEST_KEY)
            .header("accept", media_type)
            .header("content-type", media_type)
            .body(json!({ "data": data }).to_string());
        let response = request.send().await.unwrap();
        let status = response.status();
        let value: Value = response.json().await.unwrap();
        assert!(status.is_success(), "{path}: {value}");
        value["data"].clone()
    }

    /// Waits until no notification is being delivered.
    pub async fn settle(&self) {
        self.post("/notifications/settle", Value::Null).await;
    }

    /// Queues notifications until they are delivered explicitly.
    pub async fn queue_notifications(&self) {
        self.post("/notifications/mode", json!({"mode": "queue"}))
            .await;
    }

    /// Returns the ids of the notifications in a state, oldest first.
    pub async fn notifications(&self, state: &str) -> Vec<String> {
        let path = format!("/notifications?state={state}");
        let list = self.control(Method::GET, &path, Value::Null).await;
        { list.as_array().unwrap().iter() }
            .map(|notification| notification["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Delivers notifications in this order. Ids may repeat.
    pub async fn deliver(&self, ids: &[String]) {
        self.post("/notifications/deliver", json!({ "ids": ids }))
            .await;
    }

    /// Injects a fault, see `stand_in/faults.mjs`.
    pub async fn add_fault(&self, fault: Value) {
        self.post("/faults", fault).await;
    }

    pub async fn clear_faults(&self) {
        self.control(Method::DELETE, "/faults", Value::Null).await;
    }
}
