//! Integration tests in one binary, one module per area. They run against a real PostgreSQL, with
//! the real binary or with the API in process; see `harness`.

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
    clippy::wildcard_imports,
    reason = "a panic fails the test, and test names replace documentation"
)]

mod access_policy;
mod architecture;
mod attack;
mod authentication;
mod backup;
mod base_api;
mod cli_amounts;
mod cli_clients;
mod cli_output;
mod cli_payment_accounts;
mod cli_payments;
mod cli_plans;
mod cli_subscriptions;
mod cli_tenants;
mod cli_users;
mod cli_webhook_endpoints;
mod client_auth;
mod client_changes;
mod client_disconnect;
mod clients_api;
mod closed_output;
mod commands;
mod conditional_reads;
mod connections;
mod cors;
mod csv_lists;
mod database;
mod database_roles;
mod dev;
mod docs;
mod docs_site;
mod entitlements;
mod events;
mod examples;
mod graceful_shutdown;
mod harness;
mod health;
mod health_api;
mod hosts;
mod idempotency;
mod identity_providers;
mod lifecycle;
mod malformed_input;
mod memory;
mod metadata;
mod metrics;
mod migrations;
mod openapi;
mod packaging;
mod payment_accounts;
mod production_guide;
mod rate_limits;
mod refusals;
mod relay;
mod reports;
mod representations;
mod response_headers;
mod sandbox_api;
mod security_settings;
mod self_service;
mod socket_activation;
mod sql;
mod sql_source;
mod staff;
mod subscription_payments;
mod subscription_plans;
mod subscriptions;
mod tenant_providers;
mod tenants;
mod timeline;
mod traces;
mod transactions;
mod upgrade;
mod users;
mod web_app;
mod webhooks;
mod work;
