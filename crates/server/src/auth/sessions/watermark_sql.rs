//! SQL of the table `session_watermarks`, and of the sessions that a watermark ends.

use jiff::Timestamp;
use perennial_domain::{Id, SessionId, TenantId, UserId};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use super::{
    table::watermark,
    watermark::{SessionScope, Watermark},
};
use crate::db::{Error, PooledConnection, RowReader, Sql, Transaction};

/// A stored watermark, and how far housekeeping has ended its sessions.
#[derive(Debug)]
pub struct WatermarkRow {
    pub watermark: Watermark,
    pub reason: String,
    /// The operator whose command set the watermark.
    pub operator: Option<String>,
    pub set_at: Timestamp,
    /// The sessions of a tenant or issuer up to this id have been ended.
    pub cleaned_up_to: Uuid,
    /// Number of active sessions that have been ended.
    pub ended: i64,
}

macro_rules! watermark_columns {
    () => {
        "tenant_id, scope, sessions_valid_from, except_session, reason, operator, set_at, cleaned_up_to, ended"
    };
}

fn read_watermark(row: &Row) -> Result<WatermarkRow, Error> {
    let row = RowReader::new(row);
    let (tenant, scope) = (row.get("tenant_id")?, row.get::<&str>("scope")?);
    let scope = SessionScope::from_columns(tenant, scope)
        .ok_or_else(|| Error::Internal(format!("invalid value in column scope: {scope}")))?;
    Ok(WatermarkRow {
        watermark: Watermark {
            scope,
            sessions_valid_from: row.get("sessions_valid_from")?,
            except_session: row
                .get::<Option<Uuid>>("except_session")?
                .map(SessionId::new),
        },
        reason: row.get("reason")?,
        operator: row.get("operator")?,
        set_at: row.get("set_at")?,
        cleaned_up_to: row.get("cleaned_up_to")?,
        ended: row.get("ended")?,
    })
}

// A concurrent watermark of the same scope with a greater number wins. A watermark that replaces one
// whose sessions have not all been ended adds to its count.
static SET: Sql = Sql::new(concat!(
    "WITH set_watermark AS (
        INSERT INTO session_watermarks (tenant_id, scope, sessions_valid_from, except_session, reason, set_at, operator)
        VALUES ($1, $2, coalesce($5, nextval('session_numbers')), $3, $4, now(), $6)
        ON CONFLICT (tenant_id, scope) DO UPDATE
        SET sessions_valid_from = excluded.sessions_valid_from, except_session = excluded.except_session,
            reason = excluded.reason, operator = excluded.operator, set_at = excluded.set_at, cleaned_up_to = excluded.cleaned_up_to,
            ended = CASE WHEN session_watermarks.cleaned_at IS NULL THEN session_watermarks.ended ELSE 0 END,
            cleaned_at = NULL
        WHERE session_watermarks.sessions_valid_from < excluded.sessions_valid_from
        RETURNING ",
    watermark_columns!(),
    ")
     SELECT ",
    watermark_columns!(),
    ", pg_notify('perennial_sessions',
            concat_ws(' ', tenant_id, sessions_valid_from, coalesce(except_session::text, '-'), scope))
     FROM set_watermark"
));

/// Sets the watermark of a scope and notifies all instances on commit. The number is the next one of
/// the cell, or `number`. Returns `None` if the scope has a watermark with a greater number, which ends
/// the same sessions.
pub(super) async fn set(
    tx: &Transaction<'_>,
    scope: &SessionScope,
    except: Option<SessionId>,
    (reason, operator): (&str, Option<&str>),
    number: Option<i64>,
) -> Result<Option<WatermarkRow>, Error> {
    let except = except.map(Id::uuid);
    let params: [&(dyn ToSql + Sync); 6] = [
        &scope.tenant_uuid(),
        &scope.to_string(),
        &except,
        &reason,
        &number,
        &operator,
    ];
    let rows = tx.query(&SET, &params).await?;
    rows.first().map(read_watermark).transpose()
}

static CLAIM: Sql = Sql::new(concat!(
    "SELECT ",
    watermark_columns!(),
    " FROM session_watermarks WHERE cleaned_at IS NULL LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"
));

/// Locks a watermark whose sessions have not all been ended.
pub(super) async fn claim(tx: &Transaction<'_>) -> Result<Option<WatermarkRow>, Error> {
    let rows = tx.query(&CLAIM, &[]).await?;
    rows.first().map(read_watermark).transpose()
}

static SAVE_PROGRESS: Sql = Sql::new(
    "UPDATE session_watermarks SET cleaned_up_to = $3, ended = $4, cleaned_at = CASE WHEN $5 THEN now() END
     WHERE tenant_id = $1 AND scope = $2",
);

/// Stores up to which id sessions have been ended, how many, and whether that is all.
pub(super) async fn save_progress(
    tx: &Transaction<'_>,
    row: &WatermarkRow,
    is_complete: bool,
) -> Result<(), Error> {
    let scope = &row.watermark.scope;
    let params: [&(dyn ToSql + Sync); 5] = [
        &scope.tenant_uuid(),
        &scope.to_string(),
        &row.cleaned_up_to,
        &row.ended,
        &is_complete,
    ];
    tx.enqueue(&SAVE_PROGRESS, &params).await
}

static END_FOR_USER: Sql = Sql::new(
    "UPDATE sessions SET ended_at = $3
     WHERE tenant_id = $1 AND ended_at IS NULL AND id = ANY (ARRAY(
        SELECT id FROM sessions
        WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL AND number < $4 AND id IS DISTINCT FROM $5
        LIMIT $6))",
);

/// Ends up to `limit` sessions of a user that the watermark ends. Returns how many.
pub(super) async fn end_for_user(
    tx: &Transaction<'_>,
    (tenant, user): (TenantId, UserId),
    row: &WatermarkRow,
    limit: i64,
) -> Result<i64, Error> {
    let params: [&(dyn ToSql + Sync); 6] = [
        &tenant.uuid(),
        &user.uuid(),
        &row.set_at,
        &row.watermark.sessions_valid_from,
        &row.watermark.except_session.map(Id::uuid),
        &limit,
    ];
    let ended = tx.execute(&END_FOR_USER, &params).await?;
    Ok(i64::try_from(ended).unwrap_or(i64::MAX))
}

static PAGE_END: Sql = Sql::new(
    "SELECT id FROM sessions WHERE tenant_id = $1 AND id > $2 ORDER BY id OFFSET $3::bigint - 1 LIMIT 1",
);

static END_PAGE: Sql = Sql::new(
    "WITH ended AS (
        UPDATE sessions SET ended_at = $4
        WHERE tenant_id = $1 AND id > $2 AND id <= $3 AND ended_at IS NULL AND number < $5
          AND ($6::text IS NULL OR issuer = $6)
        RETURNING expires_at)
     SELECT count(*) FROM ended WHERE expires_at > $4",
);

/// Ends the sessions of a tenant or issuer among the next `limit` sessions of the tenant, and adds the
/// active ones to the count. Returns whether these were the last.
pub(super) async fn end_page(
    tx: &Transaction<'_>,
    row: &mut WatermarkRow,
    limit: i64,
) -> Result<bool, Error> {
    let tenant = row.watermark.scope.tenant_uuid();
    let rows = tx
        .query(&PAGE_END, &[&tenant, &row.cleaned_up_to, &limit])
        .await?;
    let page_end: Option<Uuid> = rows.first().map(|row| row.try_get(0)).transpose()?;
    let last = page_end.unwrap_or(Uuid::max());
    let params: [&(dyn ToSql + Sync); 6] = [
        &tenant,
        &row.cleaned_up_to,
        &last,
        &row.set_at,
        &row.watermark.sessions_valid_from,
        &row.watermark.scope.issuer(),
    ];
    let rows = tx.query(&END_PAGE, &params).await?;
    let ended: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    row.ended += ended;
    row.cleaned_up_to = last;
    Ok(page_end.is_none())
}

// Housekeeping may not have stored the end of sessions that an earlier watermark has ended.
static COUNT_PAGE: Sql = Sql::new(concat!(
    "SELECT count(*) FROM sessions
     WHERE tenant_id = $1 AND id > $2 AND id <= $3 AND (ended_at IS NULL OR ended_at >= $4) AND expires_at > $4
       AND number < $5 AND ($6::text IS NULL OR issuer = $6)
       AND NOT coalesce(",
    watermark!("min"),
    " < $4, false)",
));

/// Sessions per statement of [`count`], so that none takes long.
const COUNT_PAGE_SIZE: i64 = 20_000;

/// Counts the sessions of a tenant, or of one issuer, that were active at `since` and have a number
/// less than `valid_from`. Sessions that a watermark has ended since then are included.
pub async fn count(
    connection: &PooledConnection,
    (tenant, issuer): (TenantId, Option<&str>),
    valid_from: i64,
    since: Timestamp,
) -> Result<i64, Error> {
    let (mut total, mut after) = (0, Uuid::nil());
    loop {
        let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &after, &COUNT_PAGE_SIZE];
        let row = connection.query_opt(&PAGE_END, &params).await?;
        let page_end: Option<Uuid> = row.map(|row| row.try_get(0)).transpose()?;
        let last = page_end.unwrap_or(Uuid::max());
        let params: [&(dyn ToSql + Sync); 6] =
            [&tenant.uuid(), &after, &last, &since, &valid_from, &issuer];
        let row = connection.query_opt(&COUNT_PAGE, &params).await?;
        let counted: i64 = row.map_or(Ok(0), |row| row.try_get(0))?;
        total += counted;
        if page_end.is_none() {
            return Ok(total);
        }
        after = last;
    }
}
