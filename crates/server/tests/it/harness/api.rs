//! A caller of the interface.

use std::time::Duration;

use reqwest::{Method, header::HeaderMap};
use serde_json::Value;

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The problem's code, once everything that every problem has is there.
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

    /// Every field error as "pointer code".
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
}

/// Calls one instance as one client.
#[derive(Clone)]
pub struct Api {
    pub url: String,
    http: reqwest::Client,
    headers: Vec<(String, String)>,
}

impl Api {
    /// Without any header.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            http: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                // Longer than the service may take for anything: what never comes is a failure, not a wait.
                .timeout(Duration::from_secs(30))
                .build()
                .unwrap(),
            headers: Vec::new(),
        }
    }

    /// The same with a further header.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut with = self.clone();
        with.headers.push((name.to_owned(), value.to_owned()));
        with
    }

    /// POST of bytes, with no header but one's own.
    pub async fn send_bytes(&self, path: &str, body: Vec<u8>) -> Answer {
        self.try_send(Method::POST, path, Some(body)).await.unwrap()
    }

    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<Answer> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let answer = request.send().await?;
        Ok(Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            text: answer.text().await?,
        })
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.try_send(Method::GET, path, None).await.unwrap()
    }

    /// PUT of text that is declared as JSON.
    pub async fn put(&self, path: &str, body: &str) -> Answer {
        let json = self.with("content-type", "application/json");
        json.try_send(Method::PUT, path, Some(body.as_bytes().to_vec()))
            .await
            .unwrap()
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.try_send(Method::DELETE, path, None).await.unwrap()
    }

    /// POST of text that is declared as JSON.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        let json = self.with("content-type", "application/json");
        json.try_send(Method::POST, path, Some(body.as_bytes().to_vec()))
            .await
            .unwrap()
    }
}
