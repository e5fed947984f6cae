//! The HTTP toolkit: everything that an endpoint inherits, nothing that knows a feature.

pub mod admin;
pub mod serve;
