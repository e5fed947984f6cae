//! Stripe: signatures, notifications and the API.

mod notification;
mod signature;
mod stripe_api;
mod stripe_invoice;
mod stripe_subscription;

pub use notification::read_notification;
pub use signature::verify;
pub use stripe_api::StripeApi;
