//! Nonsense, attacks and accidents, numbered after `catalogue.rs`.
//!
//! Whatever comes in is refused with a 4xx that the document lists and the body that every problem has, at
//! once, or is harmless and taken for what it is; nothing of the inside is shown, and nothing has changed. A test says in its
//! comment which entries it covers ("Catalogue: 1, 2."); `docs/hostile-input.md` is the table of that.

mod catalogue;
mod http;
mod json;
mod money;
mod sockets;
mod strings;
mod target;
mod times;
