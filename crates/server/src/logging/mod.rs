//! Logs on standard error, and traces to an OpenTelemetry collector if one is configured.
//!
//! Log lines during a request name that request. In a trace, a request is a span with a child span per
//! database statement. Neither may contain a token, a `client-id` (an API key), an email address or a
//! body.

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

use crate::config::{LogConfig, LogFormat};

mod otlp;
mod request_context;

pub use request_context::RequestLogContext;

use request_context::WithRequest;

/// Flushes pending traces when it is dropped.
#[must_use]
pub struct LoggingGuard(Option<SdkTracerProvider>);

impl Drop for LoggingGuard {
    fn drop(&mut self) {
        if let Some(provider) = &self.0
            && let Err(error) = provider.shutdown()
        {
            tracing::warn!(%error, "cannot send the last traces");
        }
    }
}

/// Sets up logging and tracing for a server process. Must be called only once.
pub fn init(config: &LogConfig) -> anyhow::Result<LoggingGuard> {
    let provider = config
        .otlp
        .as_ref()
        .map(otlp::tracer_provider)
        .transpose()?;
    install(config, provider.as_ref(), false);
    Ok(LoggingGuard(provider))
}

/// Sets up logging for a short-lived command. Must be called only once.
pub fn init_for_command(config: &LogConfig) {
    install(config, None, true);
}

/// Installs the global subscriber. On a terminal, the text lines of a command have no timestamp or
/// target.
fn install(config: &LogConfig, provider: Option<&SdkTracerProvider>, is_command: bool) {
    // The driver logs the parameters of every statement at levels below `warn`. No configured filter
    // can enable those levels.
    let without_parameters = Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_target("tokio_postgres", LevelFilter::WARN);
    let filter = EnvFilter::new(&config.filter).and(without_parameters);
    let is_terminal = std::io::stderr().is_terminal();
    let color = is_terminal && std::env::var_os("NO_COLOR").is_none();
    let json = match config.format {
        LogFormat::Auto => !is_terminal,
        LogFormat::Text => false,
        LogFormat::Json => true,
    };
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = if json {
        let format = fmt::format().json().flatten_event(true);
        let lines = lines.json().event_format(WithRequest { format, json });
        lines.with_filter(filter).boxed()
    } else if is_command && is_terminal {
        let lines = lines.with_ansi(color).with_target(false).without_time();
        lines.with_filter(filter).boxed()
    } else {
        let format = fmt::format().with_ansi(color);
        let lines = lines
            .with_ansi(color)
            .event_format(WithRequest { format, json });
        lines.with_filter(filter).boxed()
    };
    let traces = provider.map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("perennial"))
            // Exports only this crate's spans: exporting the exporter's spans would create new ones.
            .with_filter(Targets::new().with_target("perennial", LevelFilter::DEBUG))
    });
    tracing_subscriber::registry()
        .with(traces)
        .with(lines)
        .init();
}
