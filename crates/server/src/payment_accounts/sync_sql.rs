//! SQL of the table `payment_objects`, as far as applying changes it: facts, records and waiting. `object_lease_sql.rs` has
//! the leases.

use std::time::Duration;

use jiff::Timestamp;
use perennial_domain::{
    Fact, FactFields, FetchLease, Id, PaymentAccountId, ReportedFact, Rfc3339Timestamp, SyncState,
    TenantId,
};
use tokio_postgres::{
    Row,
    types::{Json, ToSql},
};
use uuid::Uuid;

use super::{object_lease_sql::ClaimedObject, provider_notification::PaymentObjectRef};
use crate::db::{CellDatabase, Error, RowReader, Sql, Transaction};

/// The primary key of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKey {
    pub tenant: TenantId,
    pub account: PaymentAccountId,
    pub object: PaymentObjectRef,
}

/// The columns of an object's key.
pub(super) struct KeyColumns<'a> {
    tenant: Uuid,
    account: Uuid,
    kind: &'static str,
    id: &'a str,
}

impl ObjectKey {
    pub(super) fn columns(&self) -> KeyColumns<'_> {
        KeyColumns {
            tenant: self.tenant.uuid(),
            account: self.account.uuid(),
            kind: self.object.kind.as_str(),
            id: &self.object.id,
        }
    }
}

impl KeyColumns<'_> {
    /// Returns the parameters $1 to $4.
    pub(super) fn params(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.tenant, &self.account, &self.kind, &self.id]
    }
}

/// The state of a locked object.
#[derive(Debug, Clone)]
pub struct LockedObject {
    generation: i64,
    wanted: i64,
    seen: i64,
    leased_until: Option<Timestamp>,
    fact: Option<FactFields>,
    version: Option<Timestamp>,
    /// The subscription, payment or user that follows the object.
    pub record: Option<Uuid>,
}

impl LockedObject {
    /// Returns whether a lease is still the last one that was granted.
    pub fn is_held(&self, lease: FetchLease) -> bool {
        self.generation == lease.generation
    }

    /// Returns whether hints arrived after a lease was granted.
    pub fn has_newer_hints(&self, lease: FetchLease) -> bool {
        self.wanted > lease.wanted
    }

    /// Returns whether the object must be fetched.
    pub fn is_dirty(&self) -> bool {
        self.wanted > self.seen
    }

    /// Returns whether a notification has named the object.
    pub fn has_hints(&self) -> bool {
        self.wanted > 0
    }

    /// Returns the lease under which a listed fact is applied. It covers no hint: the list may be older.
    pub fn listed_lease(&self) -> FetchLease {
        FetchLease {
            generation: self.generation,
            wanted: self.seen,
        }
    }

    /// Returns the state in terms of the domain.
    pub fn sync_state<F: Fact>(&self) -> Result<SyncState<F>, Error> {
        let applied = match &self.fact {
            None => None,
            Some(fields) => {
                let fact = F::from_fields(fields);
                let fact = fact.map_err(|(field, error)| {
                    Error::Internal(format!("stored fact: {field} {}", error.message))
                })?;
                let version = self.version;
                Some(ReportedFact { fact, version })
            }
        };
        Ok(SyncState {
            applied,
            wanted: self.wanted,
            seen: self.seen,
            generation: self.generation,
            leased_until: self.leased_until,
        })
    }
}

static LOCK: Sql = Sql::new(
    "SELECT lease_generation, wanted, seen, leased_until, fact, fact_version, record_id FROM payment_objects
     WHERE tenant_id = $1 AND account_id = $2 AND kind = $3 AND external_id = $4 FOR NO KEY UPDATE",
);

/// Locks an object until the end of the transaction and returns its state.
pub(super) async fn lock(
    tx: &Transaction<'_>,
    key: &ObjectKey,
) -> Result<Option<LockedObject>, Error> {
    let rows = tx.query(&LOCK, &key.columns().params()).await?;
    let read = |row: &Row| {
        let row = RowReader::new(row);
        let fact: Option<Json<FactFields>> = row.get("fact")?;
        let version: Option<Rfc3339Timestamp> = row.parse_optional("fact_version")?;
        Ok(LockedObject {
            generation: row.get("lease_generation")?,
            wanted: row.get("wanted")?,
            seen: row.get("seen")?,
            leased_until: row.get("leased_until")?,
            fact: fact.map(|Json(fields)| fields),
            version: version.map(Rfc3339Timestamp::get),
            record: row.get("record_id")?,
        })
    };
    rows.first().map(read).transpose()
}

static FIND_RECORD: Sql = Sql::new(
    "SELECT record_id FROM payment_objects
     WHERE tenant_id = $1 AND account_id = $2 AND kind = $3 AND external_id = $4",
);

/// Returns the record that follows an object.
pub(super) async fn find_record(
    database: &CellDatabase,
    key: &ObjectKey,
) -> Result<Option<Uuid>, Error> {
    let row = database.read(&FIND_RECORD, &key.columns().params()).await?;
    row.map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

/// What is stored when an object was processed.
#[derive(Debug, Default)]
pub struct SettledObject {
    pub fact: Option<(FactFields, Option<Timestamp>)>,
    pub record: Option<Uuid>,
    /// Why a person must look at the object.
    pub reason: Option<String>,
}

impl SettledObject {
    pub fn new<F: Fact>(reported: &ReportedFact<F>, record: Option<Uuid>) -> Self {
        Self {
            fact: Some((reported.fact.to_fields(), reported.version)),
            record,
            reason: None,
        }
    }
}

static SETTLE: Sql = Sql::new(
    "UPDATE payment_objects
     SET seen = greatest(seen, $5), attempts = 0, lease_holder = NULL, leased_until = NULL,
         dirty_since = CASE WHEN wanted > $5 THEN dirty_since END,
         due_at = CASE WHEN wanted > $5 THEN now() END,
         waits_for = NULL, waits_for_ids = NULL, waits_since = NULL,
         fact = coalesce($6, fact),
         fact_version = CASE WHEN $6 IS NULL THEN fact_version ELSE $7 END,
         record_id = coalesce($8, record_id), reason = $9, updated_at = now()
     WHERE tenant_id = $1 AND account_id = $2 AND kind = $3 AND external_id = $4",
);

/// Stores that a locked object was processed up to the hints of a lease, and releases the lease.
pub(super) async fn settle(
    tx: &Transaction<'_>,
    key: &ObjectKey,
    lease: FetchLease,
    settled: &SettledObject,
) -> Result<(), Error> {
    let fact = settled.fact.as_ref();
    let version = fact.and_then(|(_, version)| *version);
    let version = version.map(|version| Rfc3339Timestamp::from(version).to_string());
    let key = key.columns();
    let [tenant, account, kind, id] = key.params();
    let params: [&(dyn ToSql + Sync); 9] = [
        tenant,
        account,
        kind,
        id,
        &lease.wanted,
        &fact.map(|(fields, _)| Json(fields)),
        &version,
        &settled.record,
        &settled.reason,
    ];
    tx.enqueue(&SETTLE, &params).await
}

/// What an object waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedRecord {
    /// `subscription`, `plan`, `user`, `new_user` or `notification`.
    pub kind: &'static str,
    /// The payment provider's ids of a subscription or plan, or the address of a user.
    pub ids: Vec<String>,
}

static POSTPONE: Sql = Sql::new(
    "UPDATE payment_objects
     SET attempts = attempts + 1, due_at = now() + $6 * interval '1 second', lease_holder = NULL, leased_until = NULL,
         waits_for = $7::text, waits_for_ids = $8, waits_since = CASE WHEN $7::text IS NULL THEN NULL ELSE now() END,
         reason = $9
     WHERE tenant_id = $1 AND account_id = $2 AND kind = $3 AND external_id = $4 AND lease_generation = $5
     RETURNING due_at",
);

/// Releases a lease. The object stays dirty and is due after a pause. Returns when, or `None` if the lease is lost.
pub(super) async fn postpone(
    tx: &Transaction<'_>,
    item: &ClaimedObject,
    pause: Duration,
    awaited: Option<&AwaitedRecord>,
    reason: &str,
) -> Result<Option<Timestamp>, Error> {
    let key = item.key.columns();
    let [tenant, account, kind, id] = key.params();
    let params: [&(dyn ToSql + Sync); 9] = [
        tenant,
        account,
        kind,
        id,
        &item.lease.generation,
        &pause.as_secs_f64(),
        &awaited.map(|awaited| awaited.kind),
        &awaited.map(|awaited| &awaited.ids),
        &reason,
    ];
    let rows = tx.query(&POSTPONE, &params).await?;
    rows.first().map_or(Ok(None), |row| Ok(row.try_get(0)?))
}

// The count and the maximum make PostgreSQL read the indexes of plans and users. For EXISTS, it expects to find a row soon
// in the table itself.
static WAKE: Sql = Sql::new(
    "UPDATE payment_objects SET due_at = now()
     WHERE (tenant_id, account_id, kind, external_id) IN (
        SELECT tenant_id, account_id, kind, external_id FROM payment_objects AS object
        WHERE due_at > now() AND leased_until IS NULL AND waits_for IS NOT NULL AND CASE waits_for
            WHEN 'subscription' THEN EXISTS (SELECT FROM subscriptions
                WHERE subscriptions.tenant_id = object.tenant_id AND subscriptions.external_id = ANY (waits_for_ids)
                  AND deleted_at IS NULL)
            WHEN 'plan' THEN 0 < (SELECT count(*) FROM subscription_plans AS plan
                WHERE plan.tenant_id = object.tenant_id AND deleted_at IS NULL
                  AND (plan.variants && waits_for_ids OR plan.product_id = ANY (waits_for_ids)))
            WHEN 'user' THEN EXISTS (SELECT FROM users
                WHERE users.tenant_id = object.tenant_id AND users.email_key = ANY (waits_for_ids)
                  AND users.updated_at > waits_since AND erased_at IS NULL)
            WHEN 'new_user' THEN waits_since < (SELECT max(users.created_at) FROM users
                WHERE users.tenant_id = object.tenant_id AND erased_at IS NULL)
            ELSE false
            END
        FOR NO KEY UPDATE OF object SKIP LOCKED)",
);

/// Makes the objects due whose subscription, plan or user has appeared.
pub(super) async fn wake_waiting(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.enqueue(&WAKE, &[]).await
}

static INSERT_HINTED: Sql = Sql::new(
    "INSERT INTO payment_objects (tenant_id, account_id, kind, external_id, wanted, dirty_since, due_at, created_at, updated_at)
     VALUES ($1, $2, $3, $4, 1, now(), now(), now(), now()) ON CONFLICT DO NOTHING",
);

/// Makes an object dirty that no notification has named yet.
pub(super) async fn hint_unknown(tx: &Transaction<'_>, key: &ObjectKey) -> Result<(), Error> {
    tx.enqueue(&INSERT_HINTED, &key.columns().params()).await
}

static SET_CUSTOMER: Sql = Sql::new(
    "INSERT INTO payment_objects (tenant_id, account_id, kind, external_id, wanted, record_id, created_at, updated_at)
     VALUES ($1, $2, $3, $4, 0, $5, now(), now())
     ON CONFLICT (tenant_id, account_id, kind, external_id) DO UPDATE SET record_id = $5, updated_at = now()
     WHERE payment_objects.record_id IS DISTINCT FROM $5",
);

/// Stores which user a customer is.
pub(super) async fn set_customer(
    tx: &Transaction<'_>,
    customer: &ObjectKey,
    user: Uuid,
) -> Result<(), Error> {
    let key = customer.columns();
    let [tenant, account, kind, id] = key.params();
    let params: [&(dyn ToSql + Sync); 5] = [tenant, account, kind, id, &user];
    tx.enqueue(&SET_CUSTOMER, &params).await
}
