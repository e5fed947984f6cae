//! Stripe: signatures, notifications and the API.

mod stripe_api;
mod stripe_checkout;
mod stripe_commands;
mod stripe_invoice;
mod stripe_lists;
mod stripe_notification;
mod stripe_prices;
mod stripe_purchase;
mod stripe_signature;
mod stripe_subscription;
mod stripe_webhook;

pub use stripe_api::StripeApi;
pub use stripe_lists::{EventRange, InvoiceMoneyIndex, StripeEventPage};
pub use stripe_notification::read_notification;
pub use stripe_signature::verify;
