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
    reason = "in a test, to panic is to fail, and names say what is shown"
)]

mod architecture;
mod harness;
mod health;
