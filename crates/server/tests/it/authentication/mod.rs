//! Authentication: sign-in, sessions, tokens, keys and their limits.

mod access_tokens;
mod client_ip;
mod load_balancer;
mod rate_limits;
mod refresh;
mod revocation;
mod secrets;
mod session_cleanup;
mod sessions;
mod sign_in;
mod signing_keys;
mod timing;
