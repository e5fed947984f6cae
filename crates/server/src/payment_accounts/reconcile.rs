//! The leased task that finds changes whose notification was lost.
//!
//! | payment provider | lists |
//! |---|---|
//! | Stripe | events after the cursor; without one, all subscriptions and the invoices of 30 days |
//! | Lemon Squeezy | all subscriptions, and the newest invoices up to a page without news |
//!
//! An event whose notification was received is no news. Any other one is a hint, as its notification would have been.

use jiff::{SignedDuration, Timestamp};
use perennial_domain::{PaymentAccount, TenantId};

use super::{
    account_api::{AccountApi, open_api_key},
    fetched_object::FetchError,
    list_position_sql,
    list_walk::{ListWalk, WalkError, WalkPurpose},
    objects_sql,
    reconcile_sql::{self, ReconcilableAccount},
    request_retries::RequestRetries,
    stripe::{EventRange, StripeApi, StripeEventPage},
    table,
};
use crate::{
    app::App,
    db::{CellDatabase, Error},
    http::outbound::ApiHttpError,
};

/// The name of the task in the table `task_leases`.
pub const RECONCILE_TASK: &str = "payment_accounts.reconcile";

/// Stripe keeps events for 30 days. A day less, because clocks differ and a run takes time.
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(29 * 24);
/// Events are listed from this long before the last run, because clocks differ.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(10);

/// The outcomes of the reconcile of an account.
const DONE: &str = "done";
const FAILED: &str = "failed";

/// Reconciles all accounts of a cell that have an API key. An account that fails is tried again by the next run.
pub async fn reconcile_accounts(app: &App, database: &CellDatabase) -> Result<(), Error> {
    for found in reconcile_sql::list_accounts(database).await? {
        let Some(account) = table::find(database, found.tenant, found.account).await? else {
            continue;
        };
        let outcome = match reconcile(app, database, &found, &account).await {
            Ok(()) => DONE,
            Err(WalkError::Database(error)) if is_database_away(&error) => return Err(error),
            // One account must not keep the others from being reconciled.
            Err(error) => {
                tracing::warn!(account = %account.id, %error, "cannot reconcile a payment account");
                FAILED
            }
        };
        count_reconciles(outcome, 1);
    }
    Ok(())
}

fn is_database_away(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_) | Error::Busy(_))
}

/// Creates the counters, so that an alert notices the first increment.
pub(super) fn register_counters() {
    count_reconciles(DONE, 0);
    count_reconciles(FAILED, 0);
    count_missed(0);
}

fn count_reconciles(outcome: &'static str, number: u64) {
    metrics::counter!("perennial_payment_reconciles_total", "outcome" => outcome).increment(number);
}

fn count_missed(number: u64) {
    metrics::counter!("perennial_payment_events_missed_total").increment(number);
}

async fn reconcile(
    app: &App,
    database: &CellDatabase,
    found: &ReconcilableAccount,
    account: &PaymentAccount,
) -> Result<(), WalkError> {
    let started_at = app.clock.now();
    let Some(key) = open_api_key(&app.keys, database, found.tenant, account).await? else {
        return Ok(());
    };
    let last = account.last_reconciled_at;
    let recent = last.filter(|last| started_at.duration_since(*last) < EVENT_TTL);
    let events = match AccountApi::for_account(app, account, &key) {
        AccountApi::LemonSqueezy(_) => None,
        AccountApi::Stripe(api) => Some(StripeEvents {
            app,
            database,
            owner: (found.tenant, account),
            api,
        }),
    };
    if let (Some(events), Some(recent)) = (&events, recent) {
        let cursor = found.cursor.as_deref();
        return events.reconcile(cursor, recent, started_at).await;
    }
    let walk = ListWalk {
        app,
        database,
        tenant: found.tenant,
        account,
        purpose: WalkPurpose::Reconcile,
        is_dry_run: false,
        assumed_variants: std::collections::HashSet::default(),
    };
    let report = walk.run(|_| ()).await?;
    // Before the first run, no notification was expected.
    if last.is_some() {
        let [subscriptions, invoices] = [&report.subscriptions, &report.invoices];
        count_missed(subscriptions.news() + invoices.news());
    }
    for problem in &report.problems {
        tracing::warn!(account = %account.id, problem, "a payment object needs attention");
    }
    // The lists have no refunds and disputes of older invoices, but the events that are left do.
    if let (Some(events), Some(_)) = (&events, last) {
        let since = started_at.saturating_sub(EVENT_TTL);
        events.read_since(since.unwrap_or(started_at)).await?;
    }
    Ok(())
}

/// The events of an account of Stripe.
struct StripeEvents<'a> {
    app: &'a App,
    database: &'a CellDatabase,
    owner: (TenantId, &'a PaymentAccount),
    api: StripeApi<'a>,
}

impl StripeEvents<'_> {
    async fn reconcile(
        &self,
        cursor: Option<&str>,
        recent: Timestamp,
        started_at: Timestamp,
    ) -> Result<(), WalkError> {
        let is_read = match cursor {
            Some(cursor) => self.read_after(cursor).await?,
            None => false,
        };
        let newest = if is_read {
            None
        } else {
            let since = recent.saturating_sub(CLOCK_TOLERANCE);
            self.read_since(since.unwrap_or(recent)).await?
        };
        let (tenant, account) = self.owner;
        let mut connection = self.database.connection().await?;
        let tx = connection.begin();
        let owner = (tenant, account.id);
        list_position_sql::set_reconciled(&tx, owner, newest.as_deref(), started_at).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Lists a page of events, if necessary with several attempts.
    async fn list(&self, range: EventRange<'_>) -> Result<StripeEventPage, FetchError> {
        let mut retries = RequestRetries::new(self.app, self.owner.1);
        loop {
            match self.api.list_events(range).await {
                Ok(page) => return Ok(page),
                Err(error) => retries.pause(error).await?,
            }
        }
    }

    /// Reads the events after the cursor, oldest page first, and moves the cursor with each page. Returns false if Stripe
    /// does not know the cursor any more.
    async fn read_after(&self, cursor: &str) -> Result<bool, WalkError> {
        let mut cursor = cursor.to_owned();
        loop {
            let page = match self.list(EventRange::After(&cursor)).await {
                Err(FetchError::Http(ApiHttpError::Rejected(..) | ApiHttpError::NotFound(_))) => {
                    return Ok(false);
                }
                page => page?,
            };
            let newest = page.events.first().map(|(id, _)| id.clone());
            self.hint(&page, newest.as_deref()).await?;
            match newest {
                Some(newest) if page.has_more => cursor = newest,
                Some(_) | None => return Ok(true),
            }
        }
    }

    /// Reads the events since a time, newest page first. Returns the newest one.
    async fn read_since(&self, since: Timestamp) -> Result<Option<String>, WalkError> {
        let (mut newest, mut before) = (None, None::<String>);
        loop {
            let range = EventRange::Since {
                seconds: since.as_second(),
                before: before.as_deref(),
            };
            let page = self.list(range).await?;
            self.hint(&page, None).await?;
            newest = newest.or_else(|| page.events.first().map(|(id, _)| id.clone()));
            before = page.events.last().map(|(id, _)| id.clone());
            if !page.has_more || before.is_none() {
                return Ok(newest);
            }
        }
    }

    /// Marks the objects of events as dirty whose notification was not received, and moves the cursor.
    async fn hint(&self, page: &StripeEventPage, cursor: Option<&str>) -> Result<(), Error> {
        let (tenant, account) = self.owner;
        let owner = (tenant, account.id);
        let ids: Vec<&str> = page.events.iter().map(|(id, _)| id.as_str()).collect();
        let known = reconcile_sql::known_events(self.database, owner, &ids).await?;
        let now = self.app.clock.now();
        let mut connection = self.database.connection().await?;
        let tx = connection.begin();
        let mut missed = 0;
        let missed_objects = { page.events.iter() }
            .filter(|(id, _)| !known.contains(id))
            .filter_map(|(_, object)| object.as_ref());
        // Always locked in this order, so that concurrent transactions cannot block each other.
        let mut missed_objects: Vec<_> = missed_objects.collect();
        missed_objects.sort_by_key(|object| (object.kind.as_str(), &object.id));
        for object in missed_objects {
            objects_sql::mark_dirty(&tx, owner, object, now, false).await?;
            missed += 1;
        }
        if let Some(cursor) = cursor {
            reconcile_sql::set_cursor(&tx, owner, cursor).await?;
        }
        tx.commit().await?;
        count_missed(missed);
        Ok(())
    }
}
