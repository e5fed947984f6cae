//! Parses a stream of server-sent events (the format `text/event-stream`).

use anyhow::bail;

/// The longest line that is accepted. An event is one line, and a record of the API is much shorter.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// An event, or a cursor without an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerSentEvent {
    /// The cursor after the event.
    pub id: Option<String>,
    /// Empty if only the cursor moved.
    pub data: String,
}

/// Collects lines until a blank one completes an event.
#[derive(Default)]
pub(super) struct SseParser {
    /// The bytes after the last line break.
    rest: Vec<u8>,
    id: Option<String>,
    data: Option<String>,
}

impl SseParser {
    /// Takes the next part of the stream and returns the events that it completes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> anyhow::Result<Vec<ServerSentEvent>> {
        self.rest.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8(line)?;
            events.extend(self.take_line(line.trim_end_matches(['\r', '\n'])));
        }
        if self.rest.len() > MAX_LINE_BYTES {
            bail!("the service sent a line of more than {MAX_LINE_BYTES} bytes");
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &str) -> Option<ServerSentEvent> {
        if line.is_empty() {
            let (id, data) = (self.id.take(), self.data.take());
            let data = data.unwrap_or_default();
            return (id.is_some() || !data.is_empty()).then_some(ServerSentEvent { id, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "data" => {
                let data = self.data.get_or_insert_default();
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            }
            // The type is also in the data. A line that starts with a colon is a comment.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&str>, data: &str) -> ServerSentEvent {
        ServerSentEvent {
            id: id.map(str::to_owned),
            data: data.to_owned(),
        }
    }

    #[test]
    fn events_are_found_wherever_the_stream_is_divided() {
        let stream = ":\nid: a\n\nid: b\nevent: plan.created\ndata: {\"name\": \"Größe\"}\n\n:\n\n\
                      id: c\r\ndata: {}\r\n\r\nid: d\ndata: {";
        let expected = [
            event(Some("a"), ""),
            event(Some("b"), r#"{"name": "Größe"}"#),
            event(Some("c"), "{}"),
        ];
        for size in 1..stream.len() {
            let mut parser = SseParser::default();
            let parts = stream.as_bytes().chunks(size);
            let events: Vec<_> = parts.flat_map(|part| parser.push(part).unwrap()).collect();
            assert_eq!(events, expected, "in parts of {size}");
        }
    }

    #[test]
    fn endless_line_is_rejected() {
        let mut parser = SseParser::default();
        let part = vec![b'x'; MAX_LINE_BYTES];
        parser.push(&part).unwrap();
        assert!(parser.push(&part).is_err());
    }
}
