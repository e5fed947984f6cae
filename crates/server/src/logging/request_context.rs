//! Adds the current request to log lines.
//!
//! The request is stored in a task-local variable and formatted only when a line is logged. A span per
//! request would cost 10% of the time of a short request, so spans are only created when traces are
//! exported.

use std::{collections::BTreeMap, fmt, sync::Arc};

use axum::http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

tokio::task_local! {
    static CURRENT: RequestLogContext;
}

/// The request that log lines refer to.
#[derive(Debug, Clone)]
pub struct RequestLogContext {
    pub id: Arc<str>,
    pub method: Method,
    /// The path template, such as `/users/{id}`.
    pub route: &'static str,
}

impl RequestLogContext {
    /// Returns the id of the current request, if any.
    pub fn current_id() -> Option<String> {
        CURRENT
            .try_with(|request| request.id.as_ref().to_owned())
            .ok()
    }

    /// Runs `future` with this request in its log lines.
    pub async fn scope<T>(self, future: impl Future<Output = T>) -> T {
        CURRENT.scope(self, future).await
    }
}

/// Formats events with `format` and adds the current request, if any.
pub(super) struct WithRequest<F> {
    pub format: F,
    /// Whether `format` produces JSON objects.
    pub json: bool,
}

/// A JSON log line. Serializing in this order keeps the timestamp first and the request last.
#[derive(Deserialize, Serialize)]
struct JsonLine {
    timestamp: String,
    level: String,
    #[serde(flatten)]
    fields: BTreeMap<String, Value>,
    #[serde(skip_deserializing)]
    request: Option<JsonRequest>,
}

#[derive(Serialize)]
struct JsonRequest {
    id: Arc<str>,
    method: String,
    route: &'static str,
}

impl<S, N, F> FormatEvent<S, N> for WithRequest<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Ok(RequestLogContext { id, method, route }) = CURRENT.try_with(Clone::clone) else {
            return self.format.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.format
            .format_event(context, Writer::new(&mut line), event)?;
        if !self.json {
            let line = line.trim_end();
            return writeln!(writer, "{line} request={id} {method} {route}");
        }
        // An event with its own field `timestamp` or `level` has duplicate keys: its line stays as it is.
        let Ok(mut with_request) = serde_json::from_str::<JsonLine>(&line) else {
            return writer.write_str(&line);
        };
        with_request.request = Some(JsonRequest {
            id,
            method: method.to_string(),
            route,
        });
        let line = serde_json::to_string(&with_request).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::Mutex};

    use serde_json::json;
    use tracing_subscriber::{fmt as format, layer::SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Logs one line outside and one line inside a request.
    async fn logged(json: bool) -> [String; 2] {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let layer = format::layer().with_writer(move || writer.clone());
        let registry = tracing_subscriber::registry();
        let format = format::format();
        let _guard = if json {
            let format = format.json().flatten_event(true);
            let layer = layer.json().event_format(WithRequest { format, json });
            tracing::subscriber::set_default(registry.with(layer))
        } else {
            let format = format.with_ansi(false).without_time();
            let layer = layer.event_format(WithRequest { format, json });
            tracing::subscriber::set_default(registry.with(layer))
        };
        tracing::info!("outside");
        let request = RequestLogContext {
            id: "req_1".into(),
            method: Method::GET,
            route: "/a/{b}",
        };
        request
            .scope(async { tracing::warn!(count = 3, "a \"word\" and a }}") })
            .await;
        let bytes = buffer.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.try_into().unwrap()
    }

    #[tokio::test]
    async fn json_line_within_a_request_has_a_request_object() {
        let [outside, inside] = logged(true).await;
        assert!(!outside.contains("\"request\":"), "{outside}");
        assert!(inside.starts_with("{\"timestamp\":"), "{inside}");
        let inside: Value = serde_json::from_str(&inside).unwrap();
        assert_eq!(inside["message"], json!("a \"word\" and a }"));
        assert_eq!(
            (&inside["level"], &inside["count"]),
            (&json!("WARN"), &json!(3))
        );
        assert!(inside["target"].is_string());
        let request = json!({"id": "req_1", "method": "GET", "route": "/a/{b}"});
        assert_eq!(inside["request"], request);
    }

    #[tokio::test]
    async fn text_line_within_a_request_ends_with_the_request() {
        let [outside, inside] = logged(false).await;
        assert!(outside.ends_with(": outside"), "{outside}");
        assert!(
            inside.ends_with(" count=3 request=req_1 GET /a/{b}"),
            "{inside}"
        );
    }
}
