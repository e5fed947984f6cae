//! Perennial, a self-hosted subscription management service: everything from the socket to the
//! database. ARCHITECTURE.md describes the modules and a request's path through them.
//!
//! A module imports only from modules that follow it in this list, as `tests/it/architecture.rs`
//! checks:
//!
//! - [`commands`]: the CLI
//! - `relay`: publishes events to a message broker; only with the feature `relay-nats`
//! - [`router`], [`admin`]: all routes, liveness and metrics
//! - [`health`]: the checks of the service and its data
//! - [`work`]: background tasks
//! - [`sandbox`]: the simulated clock and demo data of a sandbox
//! - [`console`]: staff members and their sign-in
//! - [`reports`]: recurring revenue, churn, trials, cohorts and payments
//! - [`payment_accounts`]: accounts with payment providers and their notifications
//! - [`webhooks`]: webhook endpoints and deliveries
//! - [`authentication`]: the endpoints for sign-up, sign-in, sessions and account deletion
//! - [`timeline`]: why a user's subscriptions have their status, and what happens next
//! - [`subscription_payments`], [`entitlements`], [`subscriptions`], [`subscription_plans`],
//!   [`users`], [`clients`], [`tenant_providers`], [`payment_commands`], [`event_feed`]: the other features
//! - [`revenue_journal`]: the journal that reports are computed from
//! - [`record`]: locking, errors, soft delete and events of plans, subscriptions and payments
//! - [`app`]: the shared state
//! - [`identity_providers`]: verification of external tokens
//! - [`auth`]: authentication and authorization of requests, with tenants, clients (API keys),
//!   access tokens and sessions
//! - [`events`]: the event log
//! - [`docs_site`]: documentation and API explorer
//! - [`http`]: the HTTP toolkit
//! - [`db`]: access to PostgreSQL
//! - [`logging`], [`crypto`], [`config`], [`clock`], [`randomness`]

pub mod admin;
pub mod app;
pub mod auth;
pub mod authentication;
pub mod clients;
pub mod clock;
pub mod commands;
pub mod config;
pub mod console;
pub mod crypto;
pub mod db;
pub mod docs_site;
pub mod entitlements;
pub mod event_feed;
pub mod events;
pub mod health;
pub mod http;
pub mod identity_providers;
pub mod logging;
pub mod payment_accounts;
pub mod payment_commands;
pub mod randomness;
pub mod record;
#[cfg(feature = "relay-nats")]
pub mod relay;
pub mod reports;
pub mod revenue_journal;
pub mod router;
pub mod sandbox;
pub mod subscription_payments;
pub mod subscription_plans;
pub mod subscriptions;
pub mod tenant_providers;
pub mod timeline;
pub mod user_export;
pub mod users;
pub mod webhooks;
pub mod work;
