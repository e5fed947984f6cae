//! Applies what was fetched: the record, its event, the object and its notifications change in one transaction, if the
//! worker's lease is still the last one.

use jiff::Timestamp;
use perennial_domain::{
    Fact, FetchedDecision, Lifecycle, NotificationState, PaymentAccount, PaymentObjectKind,
    ReportedFact, SyncState,
};

use super::{
    fetched_object::FetchedObject,
    object_lease_sql::ClaimedObject,
    objects_sql,
    outcome_sql::{self, NotificationOutcome},
    payment_sync,
    provider_notification::PaymentObjectRef,
    purchase_sync, subscription_sync,
    sync_sql::{self, AwaitedRecord, LockedObject, ObjectKey, SettledObject},
};
use crate::{
    app::App,
    auth,
    db::{CellDatabase, Error, Transaction},
    events::Actor,
    record::ChangeContext,
};

/// Where a fact comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactSource {
    /// The API, under the lease.
    Api,
    /// A notification, because the account has no API key. The newest one wins.
    Notification,
    /// A list, read without a lease, see [`super::listed_apply`]. Only the first fact of an object is applied.
    List,
}

/// The result of processing an object.
#[derive(Debug)]
pub enum SyncOutcome {
    /// The record follows the fact.
    Applied(SettledObject),
    /// No record follows the object, and why. A fact is stored if the record or its user was deleted, so that lists do not
    /// report it again.
    Ignored {
        reason: String,
        settled: SettledObject,
    },
    /// A record that must exist first, and the reason for people.
    Waiting(AwaitedRecord, String),
    /// A person must decide or repair something.
    Failed(String),
    /// The object leads to another one.
    MovedTo(PaymentObjectRef),
    /// The response is older than the applied fact: the object must be fetched again.
    Outdated,
    /// A concurrent transaction has created the same record: the object must be applied again.
    Conflict,
    /// Another worker has the object now.
    Fenced,
}

impl SyncOutcome {
    /// Returns the outcome of an object that no record follows.
    pub(super) fn ignored(reason: impl Into<String>) -> Self {
        Self::Ignored {
            reason: reason.into(),
            settled: SettledObject::default(),
        }
    }
}

/// An object while its fact is applied in a transaction.
#[derive(Clone, Copy)]
pub(super) struct ObjectSync<'a> {
    pub app: &'a App,
    pub database: &'a CellDatabase,
    pub tx: &'a Transaction<'a>,
    pub item: &'a ClaimedObject,
    pub locked: &'a LockedObject,
    pub source: FactSource,
    pub lifecycle: Lifecycle,
    /// Of the account.
    pub creates_users: bool,
}

/// Whether a fact is to be applied, and the one that the record follows.
pub(super) enum FactDecision<F> {
    Apply { last: Option<F> },
    Skip(SyncOutcome),
}

impl<'a> ObjectSync<'a> {
    pub(super) fn key(&self) -> &'a ObjectKey {
        &self.item.key
    }

    /// Returns the context of a change that the payment provider reports.
    pub(super) fn context(&self, now: Timestamp) -> ChangeContext<'a> {
        ChangeContext {
            tenant: self.item.key.tenant,
            actor: Actor {
                payment_account: Some(self.item.key.account),
                ..Actor::default()
            },
            ids: self.app.ids,
            now,
            tx: self.tx,
        }
    }

    /// Decides whether the record follows a fact.
    pub(super) fn judge<F: Fact>(
        &self,
        reported: &ReportedFact<F>,
    ) -> Result<FactDecision<F>, Error> {
        let state: SyncState<F> = self.locked.sync_state()?;
        let decision = match self.source {
            FactSource::Api => state.judge_fetched(self.item.lease, reported),
            FactSource::List => FetchedDecision::Apply,
            FactSource::Notification if state.accepts_payload(reported) => FetchedDecision::Apply,
            FactSource::Notification => {
                return Ok(FactDecision::Skip(SyncOutcome::Applied(
                    SettledObject::default(),
                )));
            }
        };
        Ok(match decision {
            FetchedDecision::Apply => FactDecision::Apply {
                last: state.applied.map(|applied| applied.fact),
            },
            FetchedDecision::Fenced => FactDecision::Skip(SyncOutcome::Fenced),
            FetchedDecision::Outdated => FactDecision::Skip(SyncOutcome::Outdated),
        })
    }
}

/// Applies a fetched object. Nothing is stored unless the result is `Applied`.
pub(super) async fn apply(
    app: &App,
    database: &CellDatabase,
    account: &PaymentAccount,
    item: &ClaimedObject,
    fetched: &FetchedObject,
    source: FactSource,
) -> Result<SyncOutcome, Error> {
    match fetched {
        FetchedObject::LeadsTo(target) => return Ok(SyncOutcome::MovedTo(target.clone())),
        FetchedObject::Unrelated(reason) => return Ok(SyncOutcome::ignored(*reason)),
        FetchedObject::Subscription { .. }
        | FetchedObject::Payment(_)
        | FetchedObject::Purchase(_) => {}
    }
    let home = app.db.home()?;
    let lifecycle = auth::tenants::table::find_lifecycle(home, item.key.tenant).await?;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let locked = sync_sql::lock(&tx, &item.key).await?;
    let Some(locked) = locked.filter(|locked| locked.is_held(item.lease)) else {
        tx.rollback().await;
        return Ok(SyncOutcome::Fenced);
    };
    let sync = ObjectSync {
        app,
        database,
        tx: &tx,
        item,
        locked: &locked,
        source,
        lifecycle,
        creates_users: account.details.creates_users,
    };
    let outcome = match fetched {
        FetchedObject::Subscription { reported, customer } => {
            subscription_sync::follow(&sync, reported, customer).await?
        }
        FetchedObject::Payment(reported) => payment_sync::follow(&sync, reported).await?,
        FetchedObject::Purchase(purchase) => purchase_sync::follow(&sync, purchase).await?,
        FetchedObject::LeadsTo(_) | FetchedObject::Unrelated(_) => SyncOutcome::Fenced,
    };
    let SyncOutcome::Applied(settled) = &outcome else {
        tx.rollback().await;
        return Ok(outcome);
    };
    sync_sql::settle(&tx, &item.key, item.lease, settled).await?;
    let done = NotificationOutcome::new(item, NotificationState::Done, None);
    let received_to = covered_to(item, &locked);
    outcome_sql::set_outcome(&tx, &item.key, &done, received_to).await?;
    tx.commit().await?;
    Ok(outcome)
}

/// Stores that an object was processed without a change of a record: it is ignored or failed, or leads to another one.
pub(super) async fn conclude(
    app: &App,
    database: &CellDatabase,
    item: &ClaimedObject,
    conclusion: Conclusion<'_>,
) -> Result<(), Error> {
    let key = &item.key;
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let locked = sync_sql::lock(&tx, key).await?;
    let Some(locked) = locked.filter(|locked| locked.is_held(item.lease)) else {
        tx.rollback().await;
        return Ok(());
    };
    let settled = match &conclusion {
        Conclusion::Ignored { settled, .. } => settled,
        Conclusion::Failed(reason) => &SettledObject {
            reason: Some(reason.clone()),
            ..SettledObject::default()
        },
        Conclusion::MovedTo(_) => &SettledObject::default(),
    };
    sync_sql::settle(&tx, key, item.lease, settled).await?;
    let received_to = covered_to(item, &locked);
    match conclusion {
        Conclusion::Ignored { reason, .. } => {
            let outcome = NotificationOutcome::new(item, NotificationState::Ignored, Some(reason));
            outcome_sql::set_outcome(&tx, key, &outcome, received_to).await?;
        }
        Conclusion::Failed(reason) => {
            let outcome = NotificationOutcome::new(item, NotificationState::Failed, Some(reason));
            outcome_sql::set_outcome(&tx, key, &outcome, received_to).await?;
        }
        Conclusion::MovedTo(target) => {
            outcome_sql::move_to(&tx, key, target).await?;
            let now = app.clock.now();
            objects_sql::mark_dirty(&tx, (key.tenant, key.account), target, now, false).await?;
        }
    }
    tx.commit().await
}

/// How the processing of an object ends without a change of a record.
pub(super) enum Conclusion<'a> {
    Ignored {
        reason: String,
        settled: SettledObject,
    },
    Failed(String),
    MovedTo(&'a PaymentObjectRef),
}

impl NotificationOutcome {
    /// Creates the outcome of an object that is not fetched again.
    fn new(item: &ClaimedObject, state: NotificationState, reason: Option<String>) -> Self {
        Self {
            state,
            reason,
            attempts: item.attempts,
            next_attempt_at: None,
        }
    }
}

/// Returns up to when received notifications are covered by a fetch.
fn covered_to(item: &ClaimedObject, locked: &LockedObject) -> Timestamp {
    if locked.has_newer_hints(item.lease) {
        item.claimed_at
    } else {
        Timestamp::MAX
    }
}

/// Stores that an object must be fetched again after a pause. `state` is `new` or `waiting`.
pub(super) async fn postpone(
    database: &CellDatabase,
    item: &ClaimedObject,
    pause: std::time::Duration,
    (state, reason): (NotificationState, String),
    awaited: Option<&AwaitedRecord>,
) -> Result<(), Error> {
    let mut connection = database.connection().await?;
    let tx = connection.begin();
    let postponed = sync_sql::postpone(&tx, item, pause, awaited, &reason).await?;
    let Some(next_attempt_at) = postponed else {
        tx.rollback().await;
        return Ok(());
    };
    if let Some(unknown) = awaited.and_then(|awaited| awaited_object(&item.key, awaited)) {
        sync_sql::hint_unknown(&tx, &unknown).await?;
    }
    let outcome = NotificationOutcome {
        state,
        reason: Some(reason),
        attempts: item.attempts.saturating_add(1),
        next_attempt_at: Some(next_attempt_at),
    };
    outcome_sql::set_outcome(&tx, &item.key, &outcome, Timestamp::MAX).await?;
    tx.commit().await
}

/// Returns the subscription that a payment waits for.
fn awaited_object(key: &ObjectKey, awaited: &AwaitedRecord) -> Option<ObjectKey> {
    let id = awaited
        .ids
        .first()
        .filter(|_| awaited.kind == "subscription")?;
    Some(ObjectKey {
        object: PaymentObjectRef {
            kind: PaymentObjectKind::Subscription,
            id: id.clone(),
        },
        ..key.clone()
    })
}
