//! Signing in and staying signed in.

mod attempts;
mod balanced;
mod feed;
mod from_where;
mod housekeeping;
mod keys;
mod refresh;
mod secrets;
mod sessions;
mod sign_in;
mod timing;
mod tokens;
