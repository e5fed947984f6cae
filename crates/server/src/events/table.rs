//! The table `events`: all its SQL.

use jiff::Timestamp;
use uuid::Uuid;

use crate::db::{Connection, Error, Sql, Transaction};

/// A row on its way in.
pub(super) struct Row<'a> {
    pub tenant_id: Uuid,
    pub at: Timestamp,
    pub id: Uuid,
    pub kind: &'a str,
    pub subject_id: Uuid,
    pub client_id: Option<Uuid>,
    pub user_id: Option<Uuid>,
    pub request_id: Option<&'a str>,
    /// JSON.
    pub data: &'a str,
}

static INSERT: Sql = Sql::new(
    "INSERT INTO events (tenant_id, at, id, kind, subject_id, client_id, user_id, request_id, data)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb)",
);

pub(super) async fn insert(tx: &Transaction<'_>, row: &Row<'_>) -> Result<(), Error> {
    tx.write(
        &INSERT,
        &[
            &row.tenant_id,
            &row.at,
            &row.id,
            &row.kind,
            &row.subject_id,
            &row.client_id,
            &row.user_id,
            &row.request_id,
            &row.data,
        ],
    )
    .await
}

/// What several rows have in common.
pub(super) struct Common<'a> {
    pub tenant_id: Uuid,
    pub at: Timestamp,
    pub kind: &'a str,
    pub client_id: Option<Uuid>,
    pub user_id: Option<Uuid>,
    pub request_id: Option<&'a str>,
}

static INSERT_ALL: Sql = Sql::new(
    "INSERT INTO events (tenant_id, at, id, kind, subject_id, client_id, user_id, request_id, data)
     SELECT $1::uuid, $2::timestamptz, one.id, $3::text, one.subject, $4::uuid, $5::uuid, $6::text, one.data::jsonb
     FROM unnest($7::uuid[], $8::uuid[], $9::text[]) AS one (id, subject, data)",
);

pub(super) async fn insert_all(
    tx: &Transaction<'_>,
    common: &Common<'_>,
    ids: &[Uuid],
    subjects: &[Uuid],
    data: &[String],
) -> Result<(), Error> {
    tx.write(
        &INSERT_ALL,
        &[
            &common.tenant_id,
            &common.at,
            &common.kind,
            &common.client_id,
            &common.user_id,
            &common.request_id,
            &ids,
            &subjects,
            &data,
        ],
    )
    .await
}

/// Rows of what nobody did, column by column.
#[derive(Default)]
pub(super) struct Rows {
    pub tenants: Vec<Uuid>,
    pub instants: Vec<Timestamp>,
    pub ids: Vec<Uuid>,
    pub kinds: Vec<&'static str>,
    pub subjects: Vec<Uuid>,
    /// JSON.
    pub data: Vec<String>,
}

static INSERT_ROWS: Sql = Sql::new(
    "INSERT INTO events (tenant_id, at, id, kind, subject_id, data)
     SELECT tenant_id, at, id, kind, subject_id, data::jsonb
     FROM unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::text[], $5::uuid[], $6::text[])
        AS one (tenant_id, at, id, kind, subject_id, data)",
);

pub(super) async fn insert_rows(tx: &Transaction<'_>, rows: &Rows) -> Result<(), Error> {
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
        &rows.tenants,
        &rows.instants,
        &rows.ids,
        &rows.kinds,
        &rows.subjects,
        &rows.data,
    ];
    tx.write(&INSERT_ROWS, &params).await
}

static OF_SUBJECTS: Sql = Sql::new(
    "SELECT at, kind, data FROM events WHERE tenant_id = $1 AND subject_id = ANY ($2)
     ORDER BY at, array_position($2, subject_id), id",
);

pub(super) async fn of_subjects(
    connection: &Connection,
    tenant: Uuid,
    subjects: &[Uuid],
) -> Result<Vec<super::Recorded>, Error> {
    let rows = connection
        .query(&OF_SUBJECTS, &[&tenant, &subjects])
        .await?;
    rows.iter()
        .map(|row| {
            Ok(super::Recorded {
                at: row.try_get("at")?,
                kind: row.try_get("kind")?,
                data: row.try_get("data")?,
            })
        })
        .collect()
}

static COUNT: Sql = Sql::new(
    "SELECT kind, count(*) FROM events WHERE tenant_id = ANY ($1) AND at > $2 AND at <= $3 GROUP BY kind",
);

pub(super) async fn count(
    connection: &Connection,
    tenants: &[Uuid],
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(String, i64)>, Error> {
    let rows = connection.query(&COUNT, &[&tenants, &from, &to]).await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

// Moving what the default partition caught takes what it takes.
static WITHOUT_STATEMENT_TIMEOUT: Sql = Sql::new("SET LOCAL statement_timeout = 0");
static MAKE_MONTHS: Sql = Sql::new("SELECT events_make_months()");

/// Makes the partitions of this month and the next two, and of whatever was caught without one.
pub async fn make_months(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.execute(&WITHOUT_STATEMENT_TIMEOUT, &[]).await?;
    tx.query(&MAKE_MONTHS, &[]).await?;
    Ok(())
}

// Dropping a partition waits for whoever reads the log, and every new event would wait behind it.
// Better to try again later.
static HARDLY_WAIT: Sql = Sql::new("SET LOCAL lock_timeout = '100ms'");
static DROP_OLD_MONTHS: Sql = Sql::new("SELECT events_drop_months_before($1)");

/// Drops the partitions of months older than the `keep` before the current one; answers their names.
pub async fn drop_old_months(tx: &Transaction<'_>, keep: i32) -> Result<Vec<String>, Error> {
    tx.execute(&HARDLY_WAIT, &[]).await?;
    let rows = tx.query(&DROP_OLD_MONTHS, &[&keep]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
