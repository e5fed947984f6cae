//! A client of `GET /events` with `Accept: text/event-stream`.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

/// A part of a stream: an event, or a cursor without one.
#[derive(Debug, Clone, Default)]
pub struct SourcePart {
    pub id: Option<String>,
    pub event: Option<String>,
    pub data: Option<Value>,
    pub has_comment: bool,
}

/// An open stream.
pub struct EventSource {
    response: Response,
    buffer: String,
}

/// Sends the request for a stream and returns the response.
pub async fn request_stream(
    url: &str,
    client_id: &str,
    query: &str,
    last_event_id: Option<&str>,
) -> reqwest::Result<Response> {
    let http = reqwest::Client::builder().tls_certs_only([]).build()?;
    let mut request = http
        .get(format!("{url}/events{query}"))
        .header("client-id", client_id)
        .header("accept", "text/event-stream");
    if let Some(id) = last_event_id {
        request = request.header("last-event-id", id);
    }
    request.send().await
}

impl EventSource {
    /// Opens a stream, which must succeed.
    pub async fn open(url: &str, client_id: &str, query: &str, last: Option<&str>) -> Self {
        let response = request_stream(url, client_id, query, last).await.unwrap();
        Self::from_response(response)
    }

    pub fn from_response(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            buffer: String::new(),
        }
    }

    /// Returns the next part, or `None` at the end of the stream. An interrupted stream is an error.
    pub async fn next(&mut self) -> reqwest::Result<Option<SourcePart>> {
        loop {
            if let Some((part, rest)) = self.buffer.split_once("\n\n") {
                let (part, rest) = (parse(part), rest.to_owned());
                self.buffer = rest;
                return Ok(Some(part));
            }
            match self.response.chunk().await? {
                Some(bytes) => self.buffer += std::str::from_utf8(&bytes).unwrap(),
                None => return Ok(None),
            }
        }
    }

    /// Returns the next part, which must arrive within this time.
    pub async fn next_within(&mut self, limit: Duration) -> SourcePart {
        let part = timeout(limit, self.next()).await;
        part.expect("no part of the stream in time")
            .unwrap()
            .expect("the stream has ended")
    }

    /// Returns the next event, which must arrive within this time.
    pub async fn next_event(&mut self, limit: Duration) -> SourcePart {
        loop {
            let part = self.next_within(limit).await;
            if part.data.is_some() {
                return part;
            }
        }
    }
}

fn parse(text: &str) -> SourcePart {
    let mut part = SourcePart::default();
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap();
        let value = value.trim_start();
        match field {
            "" => part.has_comment = true,
            "id" => part.id = Some(value.to_owned()),
            "event" => part.event = Some(value.to_owned()),
            "data" => part.data = Some(serde_json::from_str(value).unwrap()),
            other => panic!("{other}"),
        }
    }
    part
}
