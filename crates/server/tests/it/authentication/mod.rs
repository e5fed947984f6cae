//! Authentication: sign-in, sessions, tokens, keys and their limits.

pub mod access_tokens;
mod client_ip;
mod email_profile;
mod load_balancer;
mod master_key_cells;
mod master_key_leak;
mod master_key_rotation;
mod rate_limits;
mod reauthentication;
mod refresh;
mod revocation;
mod secrets;
mod session_cleanup;
mod session_limits;
mod session_lookups;
mod session_uses;
mod sessions;
mod sign_in;
mod signing_keys;
mod timing;
mod token_theft;
mod watermark_load;
mod watermarks;
