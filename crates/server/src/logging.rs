//! Log lines on standard error, so that standard output stays for answers.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Format, Log};

/// Starts logging; to be called once.
pub fn start(log: &Log) {
    // The server's notices ("index does not exist, skipping") are not news.
    let filter = EnvFilter::new(format!("tokio_postgres=warn,{}", log.filter));
    let terminal = std::io::stderr().is_terminal();
    let base = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if log.format == Format::Json || (log.format == Format::Auto && !terminal) {
        base.json().flatten_event(true).init();
    } else {
        base.with_ansi(terminal && std::env::var_os("NO_COLOR").is_none())
            .init();
    }
}
