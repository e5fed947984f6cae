//! `perennial listen`: forwards events to a URL on the developer's machine, as signed webhook requests.
//!
//! The cursor is saved after the receiver has accepted an event. So no event is skipped when the command, the
//! service or the receiver is stopped, and an event may be sent again with the same `webhook-id`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, anyhow};
use clap::Args;
use ipnet::{Ipv4Net, Ipv6Net};
use jiff::Timestamp;
use perennial_domain::{EventTypePattern, EventTypes, ResponseMeaning};
use reqwest::{Method, StatusCode, Url};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

mod listen_state;
mod sse_parser;

use self::{
    listen_state::ListenState,
    sse_parser::{ServerSentEvent, SseParser},
};
use super::{
    dev::StateDir,
    service_client::{ServiceClient, describe_problem},
    terminal::eprint_wrapped,
};
use crate::{
    clock::Clock,
    http::outbound::OutboundClient,
    webhooks::{delivery::message::WebhookMessage, signature::WebhookSecret},
};

/// The service sends a comment every 15 seconds.
const STREAM_READ_TIMEOUT: Duration = Duration::from_secs(40);
const MIN_RETRY_INTERVAL: Duration = Duration::from_millis(200);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  eval \"$(perennial dev --background)\"
  perennial listen --forward-to http://127.0.0.1:3000/hook
  perennial listen --forward-to http://127.0.0.1:3000/hook \\
    --types subscription.*,payment.created

Sends each event as a webhook, signed by the Standard Webhooks specification
with the secret that it prints. Starts with new events. When it is started
again, it continues after the last event that the receiver accepted (2xx).
Calls the service at $URL with the API key in $CLIENT_ID.")]
pub struct ListenArgs {
    /// The URL that receives the webhooks
    #[arg(long, value_name = "URL")]
    forward_to: Url,
    /// Event types, such as plan.created,subscription.* [default: all]
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    types: Vec<EventTypePattern>,
    /// The service's URL [default: $URL]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The file with the cursor and the secret [default: a file for --url and --forward-to in the
    /// state directory of `perennial dev`]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Forget the cursor, and start with new events
    #[arg(long)]
    reset: bool,
    /// Print the signing secret and exit
    #[arg(long)]
    print_secret: bool,
}

impl ListenArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let service = ServiceClient::from_env(self.url.clone(), STREAM_READ_TIMEOUT)?;
        let path = match &self.state {
            Some(path) => path.clone(),
            None => default_state_path(service.url(), &self.forward_to)?,
        };
        let mut state = ListenState::open(&path)?;
        if self.reset {
            state.reset()?;
        }
        if self.print_secret {
            println!("{}", state.secret_text().expose_secret());
            return Ok(());
        }
        eprint_wrapped(&format!(
            "forwarding events of {} to {}; the signing secret is {} (state: {})",
            service.url(),
            self.forward_to,
            state.secret_text().expose_secret(),
            state.path().display()
        ));
        let forwarder = Forwarder::new(self.forward_to)?;
        let types = EventTypes::new(self.types);
        let mut backoff = RetryDelay::default();
        loop {
            let cursor = state.cursor.clone();
            match follow(&service, &types, &forwarder, &mut state).await {
                Ok(()) => {}
                Err(StreamError::Rejected(error)) => return Err(error),
                Err(StreamError::Interrupted(error)) => eprintln!("reconnecting: {error:#}"),
            }
            if state.cursor != cursor {
                backoff = RetryDelay::default();
            }
            backoff.wait().await;
        }
    }
}

/// Returns a file name that depends on both URLs.
fn default_state_path(service_url: &str, forward_to: &Url) -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os("PERENNIAL_STATE_DIR").map(PathBuf::from);
    let folder = StateDir::open(folder)?;
    let hash = Sha256::digest(format!("{service_url} {forward_to}"));
    let number = hash.first_chunk().copied().map_or(0, u64::from_be_bytes);
    Ok(folder.path().join(format!("listen-{number:016x}.json")))
}

/// Why a stream ended.
enum StreamError {
    /// A retry would have the same result.
    Rejected(anyhow::Error),
    Interrupted(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for StreamError {
    fn from(error: E) -> Self {
        Self::Interrupted(error.into())
    }
}

/// Forwards events until the stream ends.
async fn follow(
    service: &ServiceClient,
    types: &EventTypes,
    forwarder: &Forwarder,
    state: &mut ListenState,
) -> Result<(), StreamError> {
    let after = state.cursor.as_deref().unwrap_or("now");
    let mut query = vec![("after", after.to_owned())];
    if !types.is_empty() {
        query.push(("types", types.names().join(",")));
    }
    let request = service
        .request(Method::GET, &format!("/events?{}", encode(&query)))
        .header("accept", "text/event-stream");
    let response = request.send().await.map_err(reqwest::Error::without_url);
    let mut response = response.context("cannot connect to the service")?;
    match response.status() {
        StatusCode::OK => {}
        status @ (StatusCode::CONFLICT | StatusCode::GONE) => {
            let problem = describe_problem(response).await;
            let error = anyhow!(
                "{problem}\nThe events after the saved cursor cannot be read ({status}). To start with new events, run \
                 the command again with --reset"
            );
            return Err(StreamError::Rejected(error));
        }
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            return Err(anyhow!(describe_problem(response).await).into());
        }
        _ => {
            return Err(StreamError::Rejected(anyhow!(
                describe_problem(response).await
            )));
        }
    }
    let mut parser = SseParser::default();
    while let Some(part) = response
        .chunk()
        .await
        .map_err(reqwest::Error::without_url)?
    {
        for ServerSentEvent { id, data } in parser.push(&part)? {
            if !data.is_empty() {
                forwarder.forward(&data, &state.secret).await?;
            }
            if let Some(cursor) = id {
                state.save_cursor(cursor).map_err(StreamError::Rejected)?;
            }
        }
    }
    Ok(())
}

fn encode(query: &[(&str, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(query)
        .finish()
}

/// Sends events to the receiver.
struct Forwarder {
    receiver: OutboundClient,
    url: Url,
}

/// The members of an event that a webhook request repeats.
#[derive(Deserialize)]
struct EventSummary {
    id: String,
    r#type: String,
    occurred_at: String,
}

impl Forwarder {
    /// Creates a forwarder to any address, because the developer has chosen it.
    fn new(url: Url) -> anyhow::Result<Self> {
        let networks = [Ipv4Net::default().into(), Ipv6Net::default().into()];
        let receiver = OutboundClient::new(&networks, false)?;
        Ok(Self { receiver, url })
    }

    /// Sends an event until the receiver accepts it, as the request of a delivery.
    async fn forward(&self, event: &str, secret: &WebhookSecret) -> anyhow::Result<()> {
        let EventSummary {
            id,
            r#type,
            occurred_at,
        } = serde_json::from_str(event)?;
        let line = format!("{type:28}  {id}");
        let data: &RawValue = serde_json::from_str(event)?;
        let at: Timestamp = occurred_at.parse()?;
        let message = WebhookMessage::with_data(id, &r#type, at, &data)?;
        let secrets = std::slice::from_ref(secret);
        let mut backoff = RetryDelay::default();
        loop {
            let (url, now) = (self.url.as_str(), Clock::System.now());
            let result = message.send(&self.receiver, url, secrets, now, None).await;
            match (result.status_code(), result.error()) {
                (Some(status), _) if result.meaning() == ResponseMeaning::Delivered => {
                    println!("{line}  {status}");
                    return Ok(());
                }
                (Some(status), _) => eprintln!("{line}  {status}; retrying"),
                (None, error) => eprintln!("{line}  {}; retrying", error.unwrap_or_default()),
            }
            backoff.wait().await;
        }
    }
}

/// The delay before the next attempt, which doubles with each.
struct RetryDelay(Duration);

impl Default for RetryDelay {
    fn default() -> Self {
        Self(MIN_RETRY_INTERVAL)
    }
}

impl RetryDelay {
    async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(MAX_RETRY_INTERVAL);
    }
}
