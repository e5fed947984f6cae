//! What the service says of itself while it runs: log lines on standard error, so that standard output
//! stays for answers, and traces to a collector, where one is configured.
//!
//! Lines that are logged while a request is served say which one. To a collector a request is one span; under it lies a
//! span for each statement that it sent to the database. Nothing
//! that is logged or traced holds a token, a client's header value, an e-mail address or a body.

use std::io::IsTerminal;

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{FilterExt, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::config::{Format, Log};

mod collector;
mod request;

pub use request::Request;

use request::Lines;

/// Sends what has not been sent yet when it is dropped.
#[must_use]
pub struct Logging(Option<SdkTracerProvider>);

impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(provider) = &self.0
            && let Err(error) = provider.shutdown()
        {
            tracing::warn!(%error, "some traces could not be sent");
        }
    }
}

/// Starts logging and tracing; to be called once.
pub fn start(log: &Log) -> anyhow::Result<Logging> {
    let provider = log.traces.as_ref().map(collector::connect).transpose()?;
    begin(log, provider.as_ref(), false);
    Ok(Logging(provider))
}

/// Starts logging alone, for a command that serves nobody; to be called once.
pub fn start_lines(log: &Log) {
    begin(log, None, true);
}

/// A command's lines on a terminal are read as they come, by whoever has typed it: when and where is known.
fn begin(log: &Log, collector: Option<&SdkTracerProvider>, command: bool) {
    let filter = EnvFilter::new(&log.filter);
    // Whatever the operator asks for: the driver's own lines hold the parameters of every statement.
    let quiet = Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_target("tokio_postgres", LevelFilter::WARN);
    let filter = filter.and(quiet);
    let terminal = std::io::stderr().is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").is_none();
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = if log.format == Format::Json || (log.format == Format::Auto && !terminal) {
        let format = fmt::format().json().flatten_event(true);
        let lines = lines.json().event_format(Lines { format, json: true });
        lines.with_filter(filter).boxed()
    } else if command && terminal {
        let lines = lines.with_ansi(color).with_target(false).without_time();
        lines.with_filter(filter).boxed()
    } else {
        let format = fmt::format().with_ansi(color);
        let json = false;
        let lines = lines.with_ansi(color).event_format(Lines { format, json });
        lines.with_filter(filter).boxed()
    };
    let traces = collector.map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("perennial"))
            // Ours alone: what the exporter does is not to be exported.
            .with_filter(Targets::new().with_target("perennial", LevelFilter::DEBUG))
    });
    tracing_subscriber::registry()
        .with(traces)
        .with(lines)
        .init();
}
