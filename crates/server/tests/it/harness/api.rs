//! An HTTP client of the API, over TCP or in process.

use std::{sync::Arc, time::Duration};

use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;

use super::{in_process::InProcessServer, recorder};

/// A response with its whole body.
#[derive(Debug)]
pub struct ApiResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl ApiResponse {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the problem's code. Panics unless the response has everything that a problem has.
    pub fn problem(&self) -> String {
        let body = self.json();
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{}",
            self.text
        );
        assert_eq!(body["status"], self.status);
        assert_eq!(body["request_id"], self.header("x-request-id"));
        let code = body["code"].as_str().unwrap();
        let url = body["type"].as_str().unwrap();
        assert!(url.ends_with(&format!("/docs/errors/{code}")), "{url}");
        for field in ["title", "detail", "instance"] {
            assert!(
                !body[field].as_str().unwrap().is_empty(),
                "{field}: {}",
                self.text
            );
        }
        code.to_owned()
    }

    /// Returns the field errors, each as "pointer code".
    pub fn field_errors(&self) -> Vec<String> {
        let body = self.json();
        let errors = body["errors"]
            .as_array()
            .unwrap_or_else(|| panic!("no errors in {body}"));
        errors
            .iter()
            .map(|error| {
                assert!(!error["message"].as_str().unwrap().is_empty());
                format!(
                    "{} {}",
                    error["pointer"].as_str().unwrap(),
                    error["code"].as_str().unwrap()
                )
            })
            .collect()
    }

    /// Asserts that the response is a problem with this status and code.
    pub fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!(
            (self.status, self.problem().as_str()),
            (status, code),
            "{}",
            self.text
        );
    }
}

#[derive(Clone)]
enum Transport {
    Tcp { url: String, http: reqwest::Client },
    InProcess(Arc<InProcessServer>),
}

/// Sends requests to one instance, each with the same headers.
#[derive(Clone)]
pub struct ApiClient {
    transport: Transport,
    headers: HeaderMap,
}

impl ApiClient {
    /// A client without headers for the instance at `url`.
    pub fn new(url: &str) -> Self {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            // Longer than any request may take, so that a missing response fails the test.
            .timeout(Duration::from_secs(30))
            // Only plain HTTP is used. Loading the system's certificates takes a while.
            .tls_certs_only([])
            .build()
            .unwrap();
        Self::with_transport(Transport::Tcp {
            url: url.to_owned(),
            http,
        })
    }

    /// A client without headers for an instance in this process.
    pub fn in_process(server: Arc<InProcessServer>) -> Self {
        Self::with_transport(Transport::InProcess(server))
    }

    fn with_transport(transport: Transport) -> Self {
        Self {
            transport,
            headers: HeaderMap::new(),
        }
    }

    /// Returns a client with the same headers for another instance in this process.
    pub fn to(&self, server: Arc<InProcessServer>) -> Self {
        Self {
            transport: Transport::InProcess(server),
            headers: self.headers.clone(),
        }
    }

    /// Returns a client that sends a further header.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut with = self.clone();
        let name: HeaderName = name.parse().unwrap();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        with.headers.append(name, value);
        with
    }

    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<ApiResponse> {
        if !recorder::is_on() {
            return self.transmit(method, path, body).await;
        }
        let response = self.transmit(method.clone(), path, body.clone()).await?;
        recorder::record(&method, path, &self.headers, body.as_deref(), &response);
        Ok(response)
    }

    async fn transmit(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<ApiResponse> {
        match &self.transport {
            Transport::Tcp { url, http } => {
                let mut request = http.request(method, format!("{url}{path}"));
                for (name, value) in &self.headers {
                    request = request.header(name, value);
                }
                if let Some(body) = body {
                    request = request.body(body);
                }
                let response = request.send().await?;
                Ok(ApiResponse {
                    status: response.status().as_u16(),
                    headers: response.headers().clone(),
                    text: response.text().await?,
                })
            }
            Transport::InProcess(server) => {
                Ok(server.handle(method, path, &self.headers, body).await)
            }
        }
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> ApiResponse {
        self.try_send(method, path, body).await.unwrap()
    }

    pub async fn get(&self, path: &str) -> ApiResponse {
        self.send(Method::GET, path, None).await
    }

    pub async fn delete(&self, path: &str) -> ApiResponse {
        self.send(Method::DELETE, path, None).await
    }

    /// Sends a POST request with a JSON body.
    pub async fn post(&self, path: &str, body: &str) -> ApiResponse {
        self.send_json(Method::POST, path, body).await
    }

    /// Sends a PUT request with a JSON body.
    pub async fn put(&self, path: &str, body: &str) -> ApiResponse {
        self.send_json(Method::PUT, path, body).await
    }

    async fn send_json(&self, method: Method, path: &str, body: &str) -> ApiResponse {
        let json = self.with("content-type", "application/json");
        json.send(method, path, Some(body.as_bytes().to_vec()))
            .await
    }

    /// Sends a GET request that must succeed and returns its body.
    pub async fn get_json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text);
        response.json()
    }

    /// Returns the records on all pages of a list.
    pub async fn list_all(&self, path: &str, query: &str, limit: usize) -> Vec<Value> {
        let (mut records, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("{path}?limit={limit}&{query}{cursor}");
            let mut page = self.get_json(&path).await;
            let data = page["data"].as_array_mut().unwrap();
            assert!(data.len() <= limit, "{path}: {} records", data.len());
            records.append(data);
            assert_eq!(page["has_more"], page["next_cursor"].is_string());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return records,
            }
        }
    }

    /// Returns the ids on all pages of a list.
    pub async fn list_ids(&self, path: &str, query: &str, limit: usize) -> Vec<String> {
        let records = self.list_all(path, query, limit).await;
        let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
        records.iter().map(id).collect()
    }

    /// Sends a POST request that must create a record and returns the record.
    pub async fn create(&self, path: &str, fields: &Value) -> Value {
        let response = self.post(path, &fields.to_string()).await;
        assert_eq!(response.status, 201, "{path} {fields}: {}", response.text);
        response.json()
    }
}
