//! A stream of NATS JetStream.
//!
//! Each message names the sequence number and the id of the message that it must follow
//! (`Nats-Expected-Last-Sequence`, `Nats-Expected-Last-Msg-Id`). The server rejects a message that
//! does not follow its predecessor. So messages can be sent without waiting for acknowledgments, and
//! a rejected or lost message also rejects all that follow it. The sequence number alone would not
//! fence a second relay: a message whose predecessor was rejected could follow a message of that
//! relay.

use std::{collections::VecDeque, time::Duration};

use async_nats::{
    Client, ConnectOptions,
    header::NATS_MESSAGE_ID,
    jetstream::{
        Context,
        context::{ContextBuilder, PublishAckFuture, PublishError, PublishErrorKind},
        message::PublishMessage,
        stream::{Config, LastRawMessageErrorKind, Stream},
    },
};
use perennial_domain::{EventId, TenantId};
use secrecy::{ExposeSecret, SecretString};

use super::broker_stream::{EventStream, OutgoingEvent, PublishedEvent, StreamError};

/// Applies to connecting, requests and acknowledgments.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of messages without an acknowledgment.
const MAX_IN_FLIGHT: usize = 256;
/// The header with the position of an event.
const POSITION: &str = "Perennial-Position";

/// A stream and the subjects of its messages: `<subject>.<tenant>.<type of the event>`.
pub struct NatsStream {
    /// One or more server URLs, separated by commas.
    servers: SecretString,
    name: String,
    subject: String,
    client: Option<Client>,
    opened: Option<OpenedStream>,
}

struct OpenedStream {
    stream: Stream,
    context: Context,
    /// The sequence number of the last message, including those that are not acknowledged yet.
    last_sequence: u64,
    /// The id of the last message that was sent since the stream was opened.
    last_id: Option<EventId>,
}

impl NatsStream {
    pub fn new(servers: SecretString, name: String, subject: String) -> Self {
        Self {
            servers,
            name,
            subject,
            client: None,
            opened: None,
        }
    }

    /// Returns the client, which reconnects automatically.
    async fn client(&mut self) -> Result<Client, StreamError> {
        if let Some(client) = &self.client {
            return Ok(client.clone());
        }
        let servers: Vec<&str> = self.servers.expose_secret().split(',').collect();
        let options = ConnectOptions::new()
            .name("perennial relay")
            .connection_timeout(TIMEOUT)
            .request_timeout(Some(TIMEOUT));
        let client = options.connect(servers).await;
        let client = client.map_err(StreamError::unavailable)?;
        self.client = Some(client.clone());
        Ok(client)
    }

    fn opened(&mut self) -> Result<&mut OpenedStream, StreamError> {
        let opened = self.opened.as_mut();
        opened.ok_or_else(|| StreamError::unavailable("the stream is not open"))
    }
}

impl EventStream for NatsStream {
    fn name(&self) -> &str {
        &self.name
    }

    async fn open(&mut self) -> Result<String, StreamError> {
        self.opened = None;
        let client = self.client().await?;
        let context = ContextBuilder::new().timeout(TIMEOUT).build(client);
        let config = Config {
            name: self.name.clone(),
            subjects: vec![format!("{}.>", self.subject)],
            description: Some(
                "Events of Perennial. Only `perennial relay` may publish here".into(),
            ),
            ..Config::default()
        };
        let stream = context.get_or_create_stream(config).await;
        let stream = stream.map_err(StreamError::unavailable)?;
        let info = stream.cached_info();
        let stream_id = info.created.unix_timestamp_nanos().to_string();
        self.opened = Some(OpenedStream {
            last_sequence: info.state.last_sequence,
            last_id: None,
            stream,
            context,
        });
        Ok(stream_id)
    }

    async fn last_event(
        &mut self,
        tenant: TenantId,
    ) -> Result<Option<PublishedEvent>, StreamError> {
        let subjects = format!("{}.{tenant}.>", self.subject);
        let opened = self.opened()?;
        // The leader of the stream responds, which has all acknowledged messages.
        let message = opened.stream.get_last_raw_message_by_subject(&subjects);
        let headers = match message.await {
            Ok(message) => message.headers,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                return Ok(None);
            }
            Err(error) => return Err(StreamError::unavailable(error)),
        };
        let position = headers.get(POSITION);
        let position = position.and_then(|value| value.as_str().parse().ok());
        let id = headers.get(NATS_MESSAGE_ID);
        let id = id.and_then(|value| value.as_str().parse().ok());
        let (Some(position), Some(id)) = (position, id) else {
            let error = format!("the last message of {subjects} is not a message of the relay");
            return Err(StreamError::Unavailable(error));
        };
        Ok(Some(PublishedEvent { position, id }))
    }

    async fn publish(&mut self, events: &[OutgoingEvent]) -> Result<(), StreamError> {
        let (name, subject) = (self.name.clone(), self.subject.clone());
        let opened = self.opened()?;
        let mut in_flight = VecDeque::with_capacity(MAX_IN_FLIGHT);
        for event in events {
            if in_flight.len() >= MAX_IN_FLIGHT {
                wait_for_first(&mut in_flight).await?;
            }
            let OutgoingEvent { tenant, kind, .. } = event;
            let mut message = PublishMessage::build()
                .payload(event.body.clone())
                .message_id(event.id.to_string())
                .header(POSITION, event.position.to_string())
                .expected_stream(&name)
                .expected_last_sequence(opened.last_sequence);
            if let Some(last_id) = opened.last_id {
                message = message.expected_last_message_id(last_id.to_string());
            }
            let subject = format!("{subject}.{tenant}.{kind}");
            let sent = opened.context.send_publish(subject, message).await;
            opened.last_sequence += 1;
            opened.last_id = Some(event.id);
            in_flight.push_back((opened.last_sequence, sent.map_err(classify)?));
        }
        while !in_flight.is_empty() {
            wait_for_first(&mut in_flight).await?;
        }
        Ok(())
    }
}

/// Waits until the oldest message in flight is stored with the expected sequence number.
async fn wait_for_first(
    in_flight: &mut VecDeque<(u64, PublishAckFuture)>,
) -> Result<(), StreamError> {
    let Some((sequence, acknowledgment)) = in_flight.pop_front() else {
        return Ok(());
    };
    let acknowledgment = acknowledgment.await.map_err(classify)?;
    if acknowledgment.duplicate || acknowledgment.sequence != sequence {
        return Err(StreamError::Fenced);
    }
    Ok(())
}

fn classify(error: PublishError) -> StreamError {
    match error.kind() {
        PublishErrorKind::WrongLastSequence | PublishErrorKind::WrongLastMessageId => {
            StreamError::Fenced
        }
        _ => StreamError::unavailable(error),
    }
}
