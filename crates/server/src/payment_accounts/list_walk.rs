//! Reads the lists of a payment account page by page, and applies them.
//!
//! The position is stored after each page, so that a process that was killed is continued by the next one. A page that was
//! applied in part is applied again, which changes nothing.

use std::collections::HashSet;

use jiff::Timestamp;
use perennial_domain::{PaymentAccount, PaymentProvider, TenantId};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::{
    account_api::{AccountApi, open_api_key},
    fetched_object::FetchError,
    list_page::{ListRange, ListStep},
    list_position_sql,
    list_report::ListReport,
    listed_apply::ListedApply,
    listed_sql,
    page_apply::PageApply,
    request_retries::RequestRetries,
    sellable::{SellablePrice, UnsellablePrice},
    stripe::{EventRange, InvoiceMoneyIndex},
};
use crate::{
    app::App,
    auth,
    db::{CellDatabase, Error},
    http::outbound::ApiHttpError,
};

/// A reconcile without a cursor reads the invoices of this time.
const RECENT_INVOICES_SECONDS: i64 = 30 * 86_400;

/// Why lists are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkPurpose {
    /// To take over everything.
    Import,
    /// To find what notifications have missed: all subscriptions, and recent invoices.
    Reconcile,
}

impl WalkPurpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::Reconcile => "reconcile",
        }
    }
}

/// Why a walk has ended early.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Database(#[from] Error),
    #[error(
        "the payment account has no API key; add one with `perennial payment-account update ACCOUNT --api-key-file FILE`"
    )]
    NoApiKey,
}

/// How far lists were read, and what was counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WalkPosition {
    pub(super) step: ListStep,
    /// The cursor of the next page; `None` for the first one.
    after: Option<String>,
    /// In Unix seconds.
    started_at: i64,
    /// The newest event before the walk has started.
    newest_event: Option<String>,
    pub report: ListReport,
    /// How many objects this process has read.
    #[serde(skip)]
    pub read: u64,
}

impl WalkPosition {
    /// Returns the objects that are being read, how many were read, and the estimated percentage of the whole walk. Nothing
    /// suggests how many subscriptions there are, so the percentage is 0 until the invoices.
    pub fn progress(&self) -> (ListStep, u64, usize) {
        let ListReport {
            subscriptions,
            invoices,
            orders,
            ..
        } = &self.report;
        match self.step {
            ListStep::Subscriptions => (self.step, subscriptions.total(), 0),
            ListStep::Invoices => {
                let (read, all) = (invoices.total(), self.report.estimated_invoices.max(1));
                let percent = (read.saturating_mul(100) / all).min(100);
                (self.step, read, usize::try_from(percent).unwrap_or(100))
            }
            ListStep::Orders => (self.step, orders.total(), 100),
        }
    }
}

/// The lists of one account.
pub struct ListWalk<'a> {
    pub app: &'a App,
    pub database: &'a CellDatabase,
    pub tenant: TenantId,
    pub account: &'a PaymentAccount,
    pub purpose: WalkPurpose,
    /// Counts what would happen, and stores nothing.
    pub is_dry_run: bool,
    /// Variants that get a plan before the import, in a dry run.
    pub assumed_variants: HashSet<String>,
}

impl ListWalk<'_> {
    async fn open_key(&self) -> Result<SecretString, WalkError> {
        let keys = &self.app.keys;
        let key = open_api_key(keys, self.database, self.tenant, self.account).await?;
        key.ok_or(WalkError::NoApiKey)
    }

    /// Lists the recurring prices.
    pub async fn list_sellable(
        &self,
    ) -> Result<Vec<Result<SellablePrice, UnsellablePrice>>, WalkError> {
        let key = self.open_key().await?;
        let api = AccountApi::for_account(self.app, self.account, &key);
        let (mut prices, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut retries = self.retries();
            let page = loop {
                match api.list_sellable(after.as_deref()).await {
                    Ok(page) => break page,
                    Err(error) => retries.pause(error).await?,
                }
            };
            prices.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(prices);
            }
        }
    }

    /// Reads all pages, from the stored position on. Calls `on_page` after each page.
    pub async fn run(
        &self,
        mut on_page: impl FnMut(&WalkPosition) + Send,
    ) -> Result<ListReport, WalkError> {
        let key = self.open_key().await?;
        let api = AccountApi::for_account(self.app, self.account, &key);
        let mut position = match self.stored_position().await? {
            Some(position) => position,
            None => self.start(&api).await?,
        };
        let since = match self.purpose {
            WalkPurpose::Import => None,
            WalkPurpose::Reconcile => Some(position.started_at - RECENT_INVOICES_SECONDS),
        };
        let home = self.app.db.home()?;
        let lifecycle = auth::tenants::table::find_lifecycle(home, self.tenant).await?;
        let pages = PageApply {
            walk: self,
            apply: ListedApply {
                app: self.app,
                database: self.database,
                lifecycle,
                creates_users: self.account.details.creates_users,
            },
            offers: Mutex::default(),
        };
        let mut money: Option<InvoiceMoneyIndex> = None;
        // Of a dry run: without records, payments of these have no subscription.
        let mut unmatched = HashSet::new();
        let mut has_restarted = false;
        // Pages of this list that this process has applied.
        let mut applied_pages = 0;
        loop {
            let step = position.step;
            let none = InvoiceMoneyIndex::default();
            if step == ListStep::Invoices && money.is_none() {
                let mut retries = self.retries();
                money = loop {
                    match api.list_money(since).await {
                        Ok(index) => break Some(index),
                        Err(error) => retries.pause(error).await?,
                    }
                };
            }
            let range = ListRange {
                after: position.after.as_deref(),
                created_since: since.filter(|_| step == ListStep::Invoices),
            };
            let index = money.as_ref().unwrap_or(&none);
            let mut retries = self.retries();
            let page = loop {
                match api.list_objects(step, range, index).await {
                    Ok(page) => break Some(page),
                    // The object that the cursor names was deleted.
                    Err(FetchError::Http(
                        ApiHttpError::Rejected(..) | ApiHttpError::NotFound(_),
                    )) if range.after.is_some() && !has_restarted => {
                        break None;
                    }
                    Err(error) => retries.pause(error).await?,
                }
            };
            let Some(page) = page else {
                // The lists are read again, which changes nothing.
                has_restarted = true;
                position = self.start(&api).await?;
                continue;
            };
            let applied = pages.apply(step, &page, &mut position.report, &mut unmatched);
            let is_known = Box::pin(applied).await?;
            position.read += u64::try_from(page.items.len()).unwrap_or(0);
            applied_pages += 1;
            self.analyze(applied_pages).await?;
            let ends_early = is_known && self.stops_at_known(step);
            position.after = page.next.filter(|_| !ends_early);
            if position.after.is_none() {
                let Some(next) = step.next(self.account.provider) else {
                    on_page(&position);
                    self.finish(&position).await?;
                    return Ok(position.report);
                };
                position.step = next;
                applied_pages = 0;
            }
            self.store(&position).await?;
            on_page(&position);
        }
    }

    /// Makes PostgreSQL plan for the rows of an import: after its first page, and when there are too many to read them all.
    async fn analyze(&self, pages: u32) -> Result<(), Error> {
        let is_due = matches!(pages, 1 | 10) && self.purpose == WalkPurpose::Import;
        if is_due && !self.is_dry_run {
            listed_sql::analyze(&self.database.connection().await?).await?;
        }
        Ok(())
    }

    /// Returns whether a page without news ends a list. Lemon Squeezy cannot select invoices and orders by
    /// time.
    fn stops_at_known(&self, step: ListStep) -> bool {
        self.purpose == WalkPurpose::Reconcile
            && step != ListStep::Subscriptions
            && self.account.provider == PaymentProvider::LemonSqueezy
    }

    async fn start(&self, api: &AccountApi<'_>) -> Result<WalkPosition, WalkError> {
        let started_at = self.app.clock.now().as_second();
        let newest_event = match api {
            AccountApi::Stripe(stripe) => {
                let mut retries = self.retries();
                let newest = loop {
                    match stripe.list_events(EventRange::Newest).await {
                        Ok(newest) => break newest,
                        Err(error) => retries.pause(error).await?,
                    }
                };
                newest.events.into_iter().next().map(|(id, _)| id)
            }
            AccountApi::LemonSqueezy(_) => None,
        };
        Ok(WalkPosition {
            step: ListStep::Subscriptions,
            after: None,
            started_at,
            newest_event,
            report: ListReport::default(),
            read: 0,
        })
    }

    fn retries(&self) -> RequestRetries<'_> {
        RequestRetries::new(self.app, self.account)
    }

    async fn stored_position(&self) -> Result<Option<WalkPosition>, Error> {
        if self.is_dry_run {
            return Ok(None);
        }
        let owner = (self.tenant, self.account.id);
        let purpose = self.purpose.as_str();
        let stored = list_position_sql::find_position(self.database, owner, purpose).await?;
        // A position of another version is not continued. Reading the lists again changes nothing.
        Ok(stored.and_then(|stored| serde_json::from_value(stored).ok()))
    }

    async fn store(&self, position: &WalkPosition) -> Result<(), Error> {
        if self.is_dry_run {
            return Ok(());
        }
        let value = serde_json::to_value(position);
        let value = value.map_err(|error| Error::Internal(error.to_string()))?;
        let owner = (self.tenant, self.account.id);
        let mut connection = self.database.connection().await?;
        let tx = connection.begin();
        list_position_sql::set_position(&tx, owner, self.purpose.as_str(), &value).await?;
        tx.commit().await
    }

    async fn finish(&self, position: &WalkPosition) -> Result<(), Error> {
        if self.is_dry_run {
            return Ok(());
        }
        let owner = (self.tenant, self.account.id);
        let started_at = Timestamp::from_second(position.started_at).unwrap_or(Timestamp::MIN);
        let cursor = position.newest_event.as_deref();
        let mut connection = self.database.connection().await?;
        let tx = connection.begin();
        list_position_sql::delete_position(&tx, owner, self.purpose.as_str()).await?;
        list_position_sql::set_reconciled(&tx, owner, cursor, started_at).await?;
        tx.commit().await
    }
}
