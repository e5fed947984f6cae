//! Cache of all payment accounts by id, with the secrets that verify their notifications.
//!
//! A notification names its account in the path and has no `client-id`, so anyone can send requests with any id. The cache
//! holds all accounts of a cell, a few per tenant. So it can tell without a query that an account does not exist, and
//! requests without a valid signature cause no database statement.
//!
//! Each change of an account sends a notification that invalidates the cell's accounts in every instance. The next lookup
//! reads all of them in one query; see [`ReadThroughCache`].

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use perennial_domain::{PaymentAccountId, PaymentMode, PaymentProvider, TenantId};

use super::payment_accounts_sql::{self, CHANNEL};
use crate::{
    crypto::SealedSecret,
    db::{CellDatabase, Databases, Error, ReadThroughCache},
    http::{
        problem::Problem,
        rate_limit::{Quota, RateLimit},
    },
};

/// A cell has one entry.
const MAX_ENTRIES: usize = 16;

/// A payment account, as far as receiving its notifications needs it.
#[derive(Debug, Clone)]
pub struct ReceivingAccount {
    pub tenant: TenantId,
    /// The name of the tenant's cell.
    pub cell: String,
    pub id: PaymentAccountId,
    pub provider: PaymentProvider,
    pub mode: PaymentMode,
    /// The provider's id of the account or store.
    pub external_account_id: Option<String>,
    /// Each with the time when it expires.
    pub secrets: Vec<(SealedSecret, Option<Timestamp>)>,
}

type AccountsById = HashMap<PaymentAccountId, Arc<ReceivingAccount>>;

/// The cached accounts of a cell. The key is the only one.
type CellAccounts = ReadThroughCache<(), Arc<AccountsById>>;

pub struct PaymentAccountCache {
    db: Arc<Databases>,
    cells: Vec<(String, Arc<CellAccounts>)>,
    /// Correctly signed notifications.
    limit: RateLimit<PaymentAccountId>,
}

impl PaymentAccountCache {
    /// Creates the cache. `rate` is the number of notifications per second and account; 0 for no limit.
    pub fn new(db: Arc<Databases>, rate: u32) -> Self {
        let quota = Quota {
            subject: "payment account",
            unit: "requests",
            limit: rate,
            window: Duration::from_secs(1),
        };
        Self {
            cells: { db.cell_names() }
                .map(|cell| (cell.to_owned(), Arc::new(CellAccounts::new(MAX_ENTRIES))))
                .collect(),
            db,
            limit: RateLimit::new(quota, Instant::now()),
        }
    }

    /// Starts listening for changed accounts. Until then, entries are used for 1 s.
    pub fn start(&self) {
        for (name, accounts) in &self.cells {
            let database = { self.db.databases() }.find(|(cell, _)| cell == name);
            let Some((_, database)) = database else {
                continue;
            };
            let cached = accounts.clone();
            let listener = database.listen(CHANNEL, move |_| cached.invalidate_all());
            accounts.use_listener(listener);
        }
    }

    /// Returns the account with this id. Fails if it is in no available cell and a cell is unavailable.
    pub async fn find(&self, id: PaymentAccountId) -> Result<Option<Arc<ReceivingAccount>>, Error> {
        let mut unavailable = None;
        for (cell, accounts) in &self.cells {
            let load = async { load_accounts(self.db.cell(cell)?).await.map(Some) };
            let cached = match accounts.get(&(), Instant::now()) {
                Some(cached) => Ok(Some(cached)),
                None => accounts.get_or_load(&(), load).await,
            };
            match cached {
                Ok(cached) => {
                    if let Some(account) = cached.and_then(|accounts| accounts.get(&id).cloned()) {
                        return Ok(Some(account));
                    }
                }
                Err(error) => unavailable = Some(error),
            }
        }
        unavailable.map_or(Ok(None), Err)
    }

    /// Makes this instance read the accounts of a cell again, after a change. Other instances are notified.
    pub fn invalidate(&self, cell: &str) {
        let changed = self.cells.iter().filter(|(name, _)| name == cell);
        changed.for_each(|(_, accounts)| accounts.invalidate_all());
    }

    /// Counts a correctly signed notification against its account.
    pub fn check_rate(&self, id: PaymentAccountId, now: Instant) -> Result<(), Problem> {
        match self.limit.check(&id, now) {
            Some(decision) if !decision.allowed => Err(decision.to_problem()),
            _ => Ok(()),
        }
    }
}

async fn load_accounts(database: &CellDatabase) -> Result<Arc<AccountsById>, Error> {
    let mut accounts = AccountsById::new();
    for account in payment_accounts_sql::list_all(database).await? {
        accounts.insert(account.id, Arc::new(account));
    }
    Ok(Arc::new(accounts))
}
