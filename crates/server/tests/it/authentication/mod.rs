//! Signing in and staying signed in.

mod feed;
mod keys;
mod refresh;
mod secrets;
mod sign_in;
mod tokens;
