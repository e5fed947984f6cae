//! Stripe: signatures, notifications and the API.

mod notification;
mod signature;
mod stripe_api;
mod stripe_checkout;
mod stripe_commands;
mod stripe_invoice;
mod stripe_lists;
mod stripe_prices;
mod stripe_subscription;
mod stripe_webhook;

pub use notification::read_notification;
pub use signature::verify;
pub use stripe_api::StripeApi;
pub use stripe_lists::{EventRange, InvoiceMoneyIndex, StripeEventPage};
