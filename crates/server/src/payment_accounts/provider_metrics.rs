//! The counters of payment accounts, and that of requests to payment providers.

use perennial_domain::PaymentProvider;

use super::{receive, reconcile, sync_worker};
use crate::http::outbound::ApiHttpError;

const OK: &str = "ok";
const UNAVAILABLE: &str = "unavailable";
const RATE_LIMITED: &str = "rate_limited";
const UNAUTHORIZED: &str = "unauthorized";
const NOT_FOUND: &str = "not_found";
const REJECTED: &str = "rejected";

/// Registers all counters of payment accounts, so that each starts at 0.
pub fn register_metrics() {
    receive::register_counters();
    sync_worker::register_counters();
    reconcile::register_counters();
    for provider in [PaymentProvider::Stripe, PaymentProvider::LemonSqueezy] {
        for outcome in [
            OK,
            UNAVAILABLE,
            RATE_LIMITED,
            UNAUTHORIZED,
            NOT_FOUND,
            REJECTED,
        ] {
            count(provider, outcome, 0);
        }
    }
}

fn count(provider: PaymentProvider, outcome: &'static str, number: u64) {
    let labels = [("provider", provider.as_str()), ("outcome", outcome)];
    metrics::counter!("perennial_payment_provider_requests_total", &labels).increment(number);
}

/// Counts a request by its result, which is returned.
pub(super) fn count_request<T>(
    provider: PaymentProvider,
    result: Result<T, ApiHttpError>,
) -> Result<T, ApiHttpError> {
    let outcome = match &result {
        Ok(_) => OK,
        Err(error) => match error {
            ApiHttpError::Unavailable(_)
            | ApiHttpError::Timeout
            | ApiHttpError::Connection(_)
            | ApiHttpError::Garbage => UNAVAILABLE,
            ApiHttpError::RateLimited(_) => RATE_LIMITED,
            ApiHttpError::Unauthorized(..) => UNAUTHORIZED,
            ApiHttpError::NotFound(_) => NOT_FOUND,
            ApiHttpError::Rejected(..) => REJECTED,
        },
    };
    count(provider, outcome, 1);
    result
}
