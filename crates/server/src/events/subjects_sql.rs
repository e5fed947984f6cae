//! SQL that reads the events of some records from the table `events`.

use jiff::Timestamp;
use perennial_domain::{Id, TenantId};
use serde_json::value::RawValue;
use tokio_postgres::{
    Row,
    types::{Json, ToSql},
};
use uuid::Uuid;

use super::{RecordedEvent, table::read_actor};
use crate::db::{Error, PooledConnection, RowReader, Sql};

/// The columns that [`from_row`] reads.
macro_rules! columns {
    () => {
        "at, kind, subject_id, client_id, user_id, staff_id, operator, payment_account_id, request_id, data"
    };
}

fn from_row(row: &Row) -> Result<RecordedEvent, Error> {
    let row = RowReader::new(row);
    Ok(RecordedEvent {
        at: row.get("at")?,
        kind: row.get("kind")?,
        subject: row.get("subject_id")?,
        actor: read_actor(&row)?,
        request_id: row.get("request_id")?,
        data: row.get::<Json<Box<RawValue>>>("data")?.0,
    })
}

static LIST_FOR_SUBJECTS: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM events
     WHERE tenant_id = $1 AND subject_id = ANY ($2)
     ORDER BY at, array_position($2, subject_id), id"
));

/// Lists the events of these records, oldest first. Events of the same time are in the order of
/// `subjects`.
pub async fn list_for_subjects(
    connection: &PooledConnection,
    tenant: TenantId,
    subjects: &[Uuid],
) -> Result<Vec<RecordedEvent>, Error> {
    let rows = connection
        .query(&LIST_FOR_SUBJECTS, &[&tenant.uuid(), &subjects])
        .await?;
    rows.iter().map(from_row).collect()
}

// Each record's latest events are read in the order of the index, so that a long history costs nothing.
static LIST_LATEST: Sql = Sql::new(concat!(
    "SELECT ",
    columns!(),
    " FROM unnest($2::uuid[]) WITH ORDINALITY AS listed (id, place)
     CROSS JOIN LATERAL (SELECT ",
    columns!(),
    ", id AS event_id FROM events WHERE tenant_id = $1 AND subject_id = listed.id ORDER BY at DESC, id DESC LIMIT $3) AS latest
     ORDER BY at DESC, place DESC, event_id DESC LIMIT $3"
));

/// Lists the latest events of these records, newest first: the reverse of [`list_for_subjects`].
pub async fn list_latest(
    connection: &PooledConnection,
    tenant: TenantId,
    subjects: &[Uuid],
    limit: i64,
) -> Result<Vec<RecordedEvent>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &subjects, &limit];
    let rows = connection.query(&LIST_LATEST, &params).await?;
    rows.iter().map(from_row).collect()
}

/// An event of a subscription, with the fields that decide about its status and access.
#[derive(Debug, Clone)]
pub struct StatusChange {
    pub at: Timestamp,
    pub kind: String,
    pub subject: Uuid,
    pub status: Option<String>,
    pub is_active: Option<bool>,
    pub starts_at: Option<String>,
    pub ends_at: Option<String>,
    /// The status before the change, if it changed.
    pub previous_status: Option<String>,
    /// Whether the change set or moved `ends_at`.
    pub has_new_end: bool,
}

static LIST_STATUS_CHANGES: Sql = Sql::new(
    "SELECT at, kind, subject_id, data ->> 'status' AS status, (data ->> 'is_active')::boolean AS is_active,
        data ->> 'starts_at' AS starts_at, data ->> 'ends_at' AS ends_at,
        data -> 'previous' ->> 'status' AS previous_status,
        coalesce(jsonb_exists(data -> 'previous', 'ends_at'), false) AS has_new_end
     FROM unnest($2::uuid[]) AS listed (id)
     CROSS JOIN LATERAL (SELECT at, kind, subject_id, data, id AS event_id FROM events
        WHERE tenant_id = $1 AND subject_id = listed.id
          AND (kind <> 'subscription.renewed' OR jsonb_exists(data -> 'previous', 'status'))
        ORDER BY at DESC, id DESC LIMIT $3) AS latest
     ORDER BY subject_id, at, event_id",
);

/// Lists the latest events of each of these subscriptions, oldest first, without the renewals that keep the status.
pub async fn list_status_changes(
    connection: &PooledConnection,
    tenant: TenantId,
    subscriptions: &[Uuid],
    limit: i64,
) -> Result<Vec<StatusChange>, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &subscriptions, &limit];
    let rows = connection.query(&LIST_STATUS_CHANGES, &params).await?;
    rows.iter()
        .map(|row| {
            let row = RowReader::new(row);
            Ok(StatusChange {
                at: row.get("at")?,
                kind: row.get("kind")?,
                subject: row.get("subject_id")?,
                status: row.get("status")?,
                is_active: row.get("is_active")?,
                starts_at: row.get("starts_at")?,
                ends_at: row.get("ends_at")?,
                previous_status: row.get("previous_status")?,
                has_new_end: row.get("has_new_end")?,
            })
        })
        .collect()
}
