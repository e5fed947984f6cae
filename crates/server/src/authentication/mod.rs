//! Authentication: who an end user is.
//!
//! A user signs in elsewhere, at an identity provider that the operator has listed for the tenant, and
//! brings that provider's access token. What it proves is decided here.

pub mod providers;
