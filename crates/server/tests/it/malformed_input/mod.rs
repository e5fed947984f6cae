//! Malformed and malicious input, numbered in `catalog.rs`.
//!
//! Each input is rejected within a second with a documented 4xx and a problem body, or is harmless and
//! accepted. No response reveals internals, and no row changes. A test's comment lists the inputs that
//! it covers ("Malformed input: 1, 2."); `docs/reference/malformed-input.md` is generated from that.

mod catalog;
mod connections;
mod http;
mod json;
mod strings;
pub mod target;
