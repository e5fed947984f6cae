//! SQL of refreshes; see [`perennial_domain::RefreshDecision`].

use jiff::Timestamp;
use perennial_domain::{ClientId, Id, Session, TenantId};
use tokio_postgres::types::ToSql;

use super::{
    super::{
        Tenant,
        tokens::{KeyId, ParsedRefreshToken},
    },
    table::{SessionRow, columns, read_session, to_column, watermark},
};
use crate::db::{Error, PooledConnection, Sql, Transaction};

/// The session and generation that a refresh token was issued for.
#[derive(Clone, Copy)]
pub struct SessionGeneration<'t> {
    /// The only client that can refresh the session.
    pub client: ClientId,
    pub token: &'t ParsedRefreshToken,
    /// The master key of the next generation.
    pub next_key: KeyId,
}

// Compare-and-set on the generation: of concurrent requests, one succeeds. Carried tokens are kept while
// one of them is the previous token.
static ROTATE: Sql = Sql::new(concat!(
    "UPDATE sessions SET generation = $5 + 1, confirmed_generation = $5, refreshed_at = now(), last_used_at = $6,
            refresh_key_id = $10, carried_tokens = CASE WHEN $11 = ANY (carried_tokens) THEN carried_tokens END,
            expires_at = least($7, sessions.created_at + $8 * interval '1 second')
     FROM users
     WHERE sessions.tenant_id = $1 AND sessions.id = $2 AND client_id = $3 AND generation = $5
       AND (salt = $4 AND refresh_key_id = $9 OR $11 = ANY (carried_tokens))
       AND ended_at IS NULL AND expires_at > $6
       AND refreshed_at + $12 * interval '1 second' > $6 AND sessions.created_at + $8 * interval '1 second' > $6
       AND ",
    watermark!("max"),
    " IS NULL
       AND users.tenant_id = $1 AND users.id = sessions.user_id AND users.erased_at IS NULL
     RETURNING ",
    columns!()
));

/// Starts the next generation if `current` is the current one of an active session.
pub async fn rotate(
    connection: &PooledConnection,
    tenant: &Tenant,
    current: SessionGeneration<'_>,
    now: Timestamp,
) -> Result<Option<SessionRow>, Error> {
    let lifetimes = &tenant.session_lifetimes;
    let idle_until = { now.saturating_add(lifetimes.idle_timeout) }.unwrap_or(Timestamp::MAX);
    let token = current.token;
    let params: [&(dyn ToSql + Sync); 12] = [
        &tenant.id.uuid(),
        &token.session.uuid(),
        &current.client.uuid(),
        &token.salt.bytes.as_slice(),
        &to_column(token.generation),
        &now,
        &idle_until,
        &lifetimes.absolute_timeout.as_secs_f64(),
        &token.salt.key.to_column(),
        &current.next_key.to_column(),
        &token.digest.as_slice(),
        &lifetimes.idle_timeout.as_secs_f64(),
    ];
    let rows = connection.query(&ROTATE, &params).await?;
    rows.first()
        .map(|row| read_session(row, lifetimes))
        .transpose()
}

// Compare-and-set: of concurrent requests, one succeeds. Confirming the generation prevents another
// late reissue. The new `refreshed_at` gives concurrent tabs 30 seconds to get the same tokens.
static REISSUE_LATE: Sql = Sql::new(
    "UPDATE sessions SET confirmed_generation = generation, refreshed_at = now()
     WHERE tenant_id = $1 AND id = $2 AND generation = $3 AND confirmed_generation < $3 AND ended_at IS NULL",
);

/// Marks the late reissue of the session's current generation. Returns false if the session was
/// revoked, refreshed, used or reissued since it was read.
pub async fn reissue_late(
    tx: &Transaction<'_>,
    tenant: TenantId,
    session: &Session,
) -> Result<bool, Error> {
    let generation = to_column(session.generation);
    let updated = tx
        .execute(
            &REISSUE_LATE,
            &[&tenant.uuid(), &session.id.uuid(), &generation],
        )
        .await?;
    Ok(updated > 0)
}
