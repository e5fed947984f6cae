//! Nonsense, attacks and accidents, numbered after `catalogue.rs`.
//!
//! Whatever comes in, the answer is a 4xx that the document lists, with the body that every problem
//! has; it comes at once, shows nothing of the inside, and nothing has changed. A test says in its
//! comment which entries it covers ("Catalogue: 1, 2."); `docs/hostile-input.md` is the table of that.

mod catalogue;
mod http;
mod json;
mod money;
mod sockets;
mod strings;
mod target;
