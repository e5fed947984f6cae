//! Applies a fact from a list, which was read without a lease.
//!
//! It is applied only as the first fact of an object. A different fact than the applied one may be older, so it is a hint,
//! and the queue task fetches the object.

use perennial_domain::{
    Fact, Lifecycle, ListedDecision, PaymentFact, ReportedFact, SubscriptionFact,
};

use super::{
    fetched_object::FetchedObject,
    listed_sql, object_fetch,
    object_lease_sql::ClaimedObject,
    objects_sql, payment_sync, purchase_sync, subscription_sync,
    sync_apply::{FactSource, ObjectSync, SyncOutcome},
    sync_sql::{self, LockedObject, ObjectKey},
};
use crate::{
    app::App,
    db::{CellDatabase, Error, Transaction},
};

/// How often an object is applied again after a concurrent transaction has created the same record.
const MAX_CONFLICTS: usize = 5;

/// What became of a listed fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedOutcome {
    /// A record follows it from now on.
    Created,
    /// The object differs from the applied fact, and is fetched soon.
    Changed,
    Unchanged,
    /// A record must exist first, and which one.
    Waiting(String),
    /// No record follows the object.
    Ignored,
    /// A person must decide or repair something.
    Failed(String),
}

/// Applies listed objects of one account.
#[derive(Clone, Copy)]
pub(super) struct ListedApply<'a> {
    pub app: &'a App,
    pub database: &'a CellDatabase,
    pub lifecycle: Lifecycle,
    /// Of the account.
    pub creates_users: bool,
}

impl ListedApply<'_> {
    /// Applies a listed object in a transaction of its own.
    pub(super) async fn apply(
        &self,
        key: &ObjectKey,
        listed: &FetchedObject,
    ) -> Result<ListedOutcome, Error> {
        for _ in 0..MAX_CONFLICTS {
            if let Some(outcome) = self.try_apply(key, listed).await? {
                return Ok(outcome);
            }
        }
        self.hint(key).await?;
        Ok(ListedOutcome::Changed)
    }

    /// Returns `None` after a conflict with a concurrent transaction.
    async fn try_apply(
        &self,
        key: &ObjectKey,
        listed: &FetchedObject,
    ) -> Result<Option<ListedOutcome>, Error> {
        let mut connection = self.database.connection().await?;
        let tx = connection.begin();
        listed_sql::insert_listed(&tx, key).await?;
        let Some(locked) = sync_sql::lock(&tx, key).await? else {
            tx.rollback().await;
            return Ok(None);
        };
        let decision = match listed {
            FetchedObject::Subscription { reported, .. } => {
                self.judge::<SubscriptionFact>(&locked, reported)?
            }
            FetchedObject::Payment(reported) => self.judge::<PaymentFact>(&locked, reported)?,
            FetchedObject::Purchase(purchase) => {
                self.judge::<PaymentFact>(&locked, &purchase.payment)?
            }
            FetchedObject::LeadsTo(_) | FetchedObject::Unrelated(_) => {
                tx.rollback().await;
                return Ok(Some(ListedOutcome::Ignored));
            }
        };
        let outcome = match decision {
            ListedDecision::Unchanged => {
                tx.rollback().await;
                return Ok(Some(ListedOutcome::Unchanged));
            }
            ListedDecision::Hint => {
                let (owner, now) = ((key.tenant, key.account), self.app.clock.now());
                objects_sql::mark_dirty(&tx, owner, &key.object, now, false).await?;
                tx.commit().await?;
                return Ok(Some(ListedOutcome::Changed));
            }
            ListedDecision::Apply => self.follow(&tx, key, &locked, listed).await?,
        };
        if let SyncOutcome::Applied(settled) = &outcome {
            listed_sql::fence(&tx, key).await?;
            sync_sql::settle(&tx, key, locked.listed_lease(), settled).await?;
            tx.commit().await?;
            return Ok(Some(ListedOutcome::Created));
        }
        tx.rollback().await;
        drop(connection);
        Ok(match outcome {
            SyncOutcome::Waiting(_, reason) => {
                // The queue task lets it wait, and notices when the record appears.
                if !locked.is_dirty() {
                    self.hint(key).await?;
                }
                Some(ListedOutcome::Waiting(reason))
            }
            SyncOutcome::Failed(reason) => Some(ListedOutcome::Failed(reason)),
            SyncOutcome::Ignored { .. } => Some(ListedOutcome::Ignored),
            SyncOutcome::Applied(_)
            | SyncOutcome::MovedTo(_)
            | SyncOutcome::Outdated
            | SyncOutcome::Conflict
            | SyncOutcome::Fenced => None,
        })
    }

    fn judge<F: Fact>(
        &self,
        locked: &LockedObject,
        reported: &ReportedFact<F>,
    ) -> Result<ListedDecision, Error> {
        let state = locked.sync_state::<F>()?;
        Ok(state.judge_listed(&reported.fact, self.app.clock.now()))
    }

    /// Makes the record follow the fact.
    async fn follow(
        &self,
        tx: &Transaction<'_>,
        key: &ObjectKey,
        locked: &LockedObject,
        listed: &FetchedObject,
    ) -> Result<SyncOutcome, Error> {
        let item = ClaimedObject {
            key: key.clone(),
            lease: locked.listed_lease(),
            attempts: 0,
            has_record: locked.record.is_some(),
            claimed_at: self.app.clock.now(),
        };
        let sync = ObjectSync {
            app: self.app,
            database: self.database,
            tx,
            item: &item,
            locked,
            source: FactSource::List,
            lifecycle: self.lifecycle,
            creates_users: self.creates_users,
        };
        let mut listed = listed.clone();
        // A list has no custom data, but a notification that waits for the worker may have it.
        if let Some(customer) = listed.customer_mut()
            && customer.user_token.is_none()
            && locked.has_hints()
        {
            object_fetch::find_user_token(self.app, self.database, &item, customer).await?;
        }
        match &listed {
            FetchedObject::Subscription { reported, customer } => {
                subscription_sync::follow(&sync, reported, customer).await
            }
            FetchedObject::Payment(reported) => payment_sync::follow(&sync, reported).await,
            FetchedObject::Purchase(purchase) => purchase_sync::follow(&sync, purchase).await,
            FetchedObject::LeadsTo(_) | FetchedObject::Unrelated(_) => Ok(SyncOutcome::Fenced),
        }
    }

    async fn hint(&self, key: &ObjectKey) -> Result<(), Error> {
        let mut connection = self.database.connection().await?;
        let tx = connection.begin();
        let (owner, now) = ((key.tenant, key.account), self.app.clock.now());
        objects_sql::mark_dirty(&tx, owner, &key.object, now, false).await?;
        tx.commit().await
    }
}
