//! The request that carries an event, and what its response means.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{ResponseMeaning, response_meaning};
use serde::Serialize;

use crate::{
    events::{log::LoggedEvent, view::EventView},
    http::{
        outbound::{OutboundClient, OutboundError, OutboundResponse, RetryAfter},
        response::timestamp,
    },
    webhooks::signature::{WebhookSecret, signature_headers},
};

/// Covers a whole request, including the response body.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(15);

/// The JSON body of a request.
#[derive(Debug, Serialize)]
struct WebhookBody<'a, T> {
    r#type: &'a str,
    /// When the event occurred.
    #[serde(serialize_with = "timestamp")]
    timestamp: Timestamp,
    data: &'a T,
}

/// A request to an endpoint, without the time and the signatures of an attempt.
#[derive(Debug, Clone)]
pub struct WebhookMessage {
    /// The same for each attempt.
    id: String,
    body: bytes::Bytes,
}

/// The result of one attempt.
#[derive(Debug)]
pub struct AttemptResult {
    pub at: Timestamp,
    pub duration: Duration,
    pub response: Result<OutboundResponse, OutboundError>,
}

impl WebhookMessage {
    /// Creates the message of an event.
    pub fn new(event: &LoggedEvent) -> serde_json::Result<Self> {
        let (id, kind) = (event.id.to_string(), event.kind.as_str());
        Self::with_data(id, kind, event.at, &EventView::from(event))
    }

    /// Creates a message with other data than an event.
    pub fn with_data(
        id: String,
        kind: &str,
        at: Timestamp,
        data: &impl Serialize,
    ) -> serde_json::Result<Self> {
        let body = serde_json::to_vec(&WebhookBody {
            r#type: kind,
            timestamp: at,
            data,
        })?;
        Ok(Self {
            id,
            body: body.into(),
        })
    }

    /// Sends the message once.
    pub async fn send(
        &self,
        client: &OutboundClient,
        url: &str,
        secrets: &[WebhookSecret],
        at: Timestamp,
        timeout: Option<Duration>,
    ) -> AttemptResult {
        let started_at = Instant::now();
        let headers = signature_headers(secrets, &self.id, at.as_second(), &self.body);
        let timeout = timeout.unwrap_or(DELIVERY_TIMEOUT);
        let response = client
            .post_json(url, headers, self.body.clone(), timeout)
            .await;
        AttemptResult {
            at,
            duration: started_at.elapsed(),
            response,
        }
    }
}

impl AttemptResult {
    /// Returns what the response means. Without a response, the endpoint may be overloaded.
    pub fn meaning(&self) -> ResponseMeaning {
        match &self.response {
            Ok(response) => response_meaning(response.status),
            Err(_) => ResponseMeaning::Failed {
                is_overloaded: true,
            },
        }
    }

    pub fn status_code(&self) -> Option<u16> {
        self.response.as_ref().ok().map(|response| response.status)
    }

    pub fn error(&self) -> Option<String> {
        self.response.as_ref().err().map(OutboundError::to_string)
    }

    pub fn duration_ms(&self) -> i32 {
        i32::try_from(self.duration.as_millis()).unwrap_or(i32::MAX)
    }

    /// Returns the pause that the endpoint requests with 429 or 503.
    pub fn requested_pause(&self) -> Option<SignedDuration> {
        let response = self.response.as_ref().ok()?;
        if ![429, 503].contains(&response.status) {
            return None;
        }
        match response.retry_after? {
            RetryAfter::Seconds(seconds) => Some(SignedDuration::from_secs(seconds.into())),
            RetryAfter::At(at) => Some(at.duration_since(self.at).max(SignedDuration::ZERO)),
        }
    }
}
