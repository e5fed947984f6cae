//! Signing in and staying signed in.

mod feed;
mod keys;
mod refresh;
mod secrets;
mod sessions;
mod sign_in;
mod tokens;
