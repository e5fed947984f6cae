//! Authentication.

mod providers;
