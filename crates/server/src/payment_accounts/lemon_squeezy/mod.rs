//! Lemon Squeezy: signatures, notifications and the API.

mod lemon_api;
mod lemon_checkout;
mod lemon_commands;
mod lemon_facts;
mod lemon_lists;
mod lemon_notification;
mod lemon_signature;
mod lemon_variants;
mod lemon_webhook;

pub use lemon_api::LemonSqueezyApi;
pub use lemon_checkout::checkout_link;
pub use lemon_facts::{ORDER_PREFIX, resource_fact, webhook_user_token};
pub use lemon_notification::read_notification;
pub use lemon_signature::verify;
