//! What is done: the service itself, from the socket to the database.
//!
//! ARCHITECTURE.md walks through it. The modules in layers, each using only those below it:
//!
//! - [`commands`]: what the binary can be told to do
//! - `http`: the HTTP toolkit that knows no feature
//! - `config`, [`logging`], [`clock`], [`randomness`]

pub mod clock;
pub mod commands;
pub mod config;
pub mod http;
pub mod logging;
pub mod randomness;
