//! Lemon Squeezy: signatures and notifications.

mod notification;
mod signature;

pub use notification::read_notification;
pub use signature::verify;
