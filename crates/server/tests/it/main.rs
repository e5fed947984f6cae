//! One test binary that mirrors the routes. Everything is real: the binary, its sockets, its
//! PostgreSQL. `harness` starts them.

#![allow(
    missing_docs,
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::too_many_lines,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::case_sensitive_file_extension_comparisons,
    clippy::sliced_string_as_bytes,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "in a test, to panic is to fail, and names say what is shown"
)]

mod access;
mod architecture;
mod at_the_terminal;
mod authentication;
mod backup;
mod browsers;
mod callers;
mod commands;
mod docs;
mod engine;
mod entitlements;
mod events;
mod hang_ups;
mod harness;
mod health;
mod hostile;
mod idempotency;
mod interface;
mod lifecycle;
mod migrations;
mod openapi;
mod providers;
mod rates;
mod sql;
mod stopping;
mod subscription_payments;
mod subscription_plans;
mod subscriptions;
mod tenants;
mod traces;
mod transactions;
mod upgrade;
mod work;
