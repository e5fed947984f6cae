//! Which request a line is about.
//!
//! A span around each request would say so too, and takes a tenth of the time of a short one, though hardly any request is
//! ever named in a line. So what there is to say is kept beside the request's task, and written into those lines
//! that there are; a span is made where traces go to a collector.

use std::{fmt, sync::Arc};

use axum::http::Method;
use serde_json::json;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

tokio::task_local! {
    static CURRENT: Request;
}

/// What a request is called.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its name.
    pub id: Arc<str>,
    /// What is wanted.
    pub method: Method,
    /// Of which path of the interface.
    pub route: &'static str,
}

impl Request {
    /// Whatever is logged meanwhile is about this request.
    pub async fn during<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }
}

/// Writes lines that say which request they are about.
pub(super) struct Lines<F> {
    /// What writes the rest of the line.
    pub format: F,
    /// Whether a line is a JSON object.
    pub json: bool,
}

impl<S, N, F> FormatEvent<S, N> for Lines<F>
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
        let Ok(Request { id, method, route }) = CURRENT.try_with(Request::clone) else {
            return self.format.format_event(context, writer, event);
        };
        let mut line = String::new();
        let rest = Writer::new(&mut line);
        self.format.format_event(context, rest, event)?;
        let line = line.trim_end();
        if !self.json {
            return writeln!(writer, "{line} request={id} {method} {route}");
        }
        let open = line.strip_suffix('}').unwrap_or(line);
        let request = json!({"id": &*id, "method": method.as_str(), "route": route});
        writeln!(writer, "{open},\"request\":{request}}}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::Value;
    use tracing_subscriber::{fmt as lines, layer::SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is logged before a request and during it.
    async fn logged(json: bool) -> Vec<String> {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = lines::layer().with_writer(move || writer.clone());
        let registry = tracing_subscriber::registry();
        let format = lines::format();
        let _held = if json {
            let format = format.json().flatten_event(true);
            let layer = layer.json().event_format(Lines { format, json });
            tracing::subscriber::set_default(registry.with(layer))
        } else {
            let format = format.with_ansi(false).without_time();
            let layer = layer.event_format(Lines { format, json });
            tracing::subscriber::set_default(registry.with(layer))
        };
        tracing::info!("before");
        let request = Request {
            id: "req_1".into(),
            method: Method::GET,
            route: "/a/{b}",
        };
        let said = async { tracing::warn!(count = 3, "a \"word\"") };
        request.during(said).await;
        let bytes = kept.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_line_of_json_names_its_request() {
        let [before, during] = logged(true).await.try_into().unwrap();
        assert!(!before.contains("\"request\":"), "{before}");
        let during: Value = serde_json::from_str(&during).unwrap();
        assert_eq!(
            (&during["message"], &during["count"]),
            (&json!("a \"word\""), &json!(3))
        );
        let request = json!({"id": "req_1", "method": "GET", "route": "/a/{b}"});
        assert_eq!(during["request"], request);
    }

    #[tokio::test]
    async fn a_line_of_text_does_too() {
        let [before, during] = logged(false).await.try_into().unwrap();
        assert!(before.ends_with(": before"), "{before}");
        assert!(
            during.ends_with(" count=3 request=req_1 GET /a/{b}"),
            "{during}"
        );
    }
}
