//! What is done: the service itself, from the socket to the database.
//!
//! ARCHITECTURE.md walks through it. The rooms from top to bottom, each using only those below it;
//! a test reads the imports and holds us to it:
//!
//! - [`commands`]: what the binary can be told to do
//! - [`router`], [`work`], [`admin`]: everything that is served, done in the background, supervised
//! - [`authentication`]: signing in and staying signed in
//! - [`subscription_plans`], [`users`]: the other features
//! - [`app`]: the one shared state
//! - [`providers`]: whom an outside token proves
//! - [`callers`]: who is calling and what it may do
//! - [`events`]: what changed, recorded
//! - [`http`]: the toolkit that knows no feature
//! - [`db`]: the one way to PostgreSQL
//! - [`logging`], [`keys`], [`config`], [`clock`], [`randomness`]

pub mod admin;
pub mod app;
pub mod authentication;
pub mod callers;
pub mod clock;
pub mod commands;
pub mod config;
pub mod db;
pub mod entitlements;
pub mod events;
pub mod http;
pub mod keys;
pub mod logging;
pub mod providers;
pub mod randomness;
pub mod router;
pub mod subscription_payments;
pub mod subscription_plans;
pub mod subscriptions;
pub mod users;
pub mod work;
