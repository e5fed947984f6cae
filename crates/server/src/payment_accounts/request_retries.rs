//! Repeats a request for a list that has failed.

use perennial_domain::PaymentAccount;

use super::{account_pauses::AccountPauses, fetched_object::FetchError};
use crate::{app::App, http::outbound::ApiHttpError};

/// Failed attempts after which a run ends. Its position stays.
const MAX_FAILURES: u32 = 8;

/// The attempts of one request.
pub(super) struct RequestRetries<'a> {
    app: &'a App,
    account: &'a PaymentAccount,
    pauses: AccountPauses,
    failures: u32,
}

impl<'a> RequestRetries<'a> {
    pub(super) fn new(app: &'a App, account: &'a PaymentAccount) -> Self {
        Self {
            app,
            account,
            pauses: AccountPauses::default(),
            failures: 0,
        }
    }

    /// Waits before the next attempt, or for as long as the API asks. Returns the error if there is none.
    pub(super) async fn pause(&mut self, error: FetchError) -> Result<(), FetchError> {
        self.failures += 1;
        let is_refused = matches!(error, FetchError::Http(ApiHttpError::Unauthorized(..)));
        if is_refused || !error.is_temporary() || self.failures >= MAX_FAILURES {
            return Err(error);
        }
        let now = self.app.clock.now();
        let pause = self.pauses.pause(self.account.id, &error, now);
        tracing::info!(account = %self.account.id, %error, ?pause, "retrying a list");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}
