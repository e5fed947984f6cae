//! SQL of refresh tokens that outlive their master key, and of the sessions that have such tokens; see
//! [`RefreshKeys::digests_to_carry`](super::super::tokens::RefreshKeys::digests_to_carry).

use perennial_domain::{Id, SessionId, TenantId};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::{
    super::tokens::{Salt, TokenDigest},
    table::to_column,
};
use crate::{
    crypto::KeyId,
    db::{CellDatabase, Error, PooledConnection, RowReader, Sql},
};

// Reads one row for a missing session too, the one before it, so that the response time does not reveal
// whether a session exists.
static CARRIES: Sql = Sql::new(
    "SELECT id FROM (
        SELECT id, carried_tokens FROM sessions WHERE tenant_id = $1 AND id <= $2 ORDER BY id DESC LIMIT 1
     ) AS nearest
     WHERE $3 = ANY (carried_tokens) AND id = $2",
);

/// Returns whether a session accepts the token with this digest, although its master key was replaced.
pub async fn carries(
    database: &CellDatabase,
    tenant: TenantId,
    session: SessionId,
    digest: &TokenDigest,
) -> Result<bool, Error> {
    let params: [&(dyn ToSql + Sync); 3] = [&tenant.uuid(), &session.uuid(), &digest.as_slice()];
    Ok(database.read(&CARRIES, &params).await?.is_some())
}

/// A session whose refresh tokens may be derived from a master key that is being replaced.
#[derive(Debug)]
pub struct SessionToCarry {
    pub id: SessionId,
    pub salt: Salt,
    pub generation: u32,
}

/// A page of a tenant's sessions.
#[derive(Debug)]
pub struct SessionPage {
    /// The sessions that have not ended and whose current token is not derived from the present master
    /// key.
    pub to_carry: Vec<SessionToCarry>,
    /// The id of the last session of the page; `None` if the page is empty.
    pub last: Option<Uuid>,
}

// Reads a page of all sessions, because a filter could make the statement read millions of rows.
static LIST_PAGE: Sql = Sql::new(
    "SELECT id, salt, refresh_key_id, generation,
            refresh_key_id <> $3 AND ended_at IS NULL AS needs_carry
     FROM sessions WHERE tenant_id = $1 AND id > $2 ORDER BY id LIMIT $4",
);

/// Reads up to `limit` sessions with an id above `after`.
pub async fn list_page(
    connection: &PooledConnection,
    tenant: TenantId,
    after: Uuid,
    present: KeyId,
    limit: i64,
) -> Result<SessionPage, Error> {
    let present = present.to_column();
    let params: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &after, &present, &limit];
    let rows = connection.query(&LIST_PAGE, &params).await?;
    let mut page = SessionPage {
        to_carry: Vec::new(),
        last: None,
    };
    for row in &rows {
        let row = RowReader::new(row);
        let id: Uuid = row.get("id")?;
        page.last = Some(id);
        if !row.get::<bool>("needs_carry")? {
            continue;
        }
        let (salt, generation): (&[u8], i32) = (row.get("salt")?, row.get("generation")?);
        let invalid = || Error::Internal("a session has an invalid salt or generation".to_owned());
        page.to_carry.push(SessionToCarry {
            id: SessionId::new(id),
            salt: Salt {
                bytes: salt.try_into().map_err(|_| invalid())?,
                key: KeyId::from_column(row.get("refresh_key_id")?),
            },
            generation: u32::try_from(generation).map_err(|_| invalid())?,
        });
    }
    Ok(page)
}

/// The new values of sessions, as columns.
#[derive(Default)]
pub struct CarriedSessions<'a> {
    ids: Vec<Uuid>,
    old_salts: Vec<&'a [u8]>,
    generations: Vec<i32>,
    new_salts: Vec<Vec<u8>>,
    /// Of the current generation and, if it exists, of the previous one.
    digests: [Vec<Option<Vec<u8>>>; 2],
}

impl<'a> CarriedSessions<'a> {
    pub fn push(&mut self, session: &'a SessionToCarry, new_salt: &Salt, digests: &[TokenDigest]) {
        self.ids.push(session.id.uuid());
        self.old_salts.push(&session.salt.bytes);
        self.generations.push(to_column(session.generation));
        self.new_salts.push(new_salt.bytes.to_vec());
        for (index, column) in self.digests.iter_mut().enumerate() {
            column.push(digests.get(index).map(|digest| digest.to_vec()));
        }
    }
}

// Keeps the digests of an earlier rotation, because the device may not have refreshed since.
//
// Skips sessions that a request has locked, so that no request can be in a deadlock with this statement, and
// sessions that were refreshed since they were read. The next pass finds them.
static CARRY: Sql = Sql::new(
    "UPDATE sessions SET salt = new.salt, refresh_key_id = $8,
        carried_tokens = coalesce(carried_tokens, '{}') || array_remove(ARRAY[new.latest, new.previous], NULL)
     FROM unnest($2::uuid[], $3::bytea[], $4::integer[], $5::bytea[], $6::bytea[], $7::bytea[])
        AS new (id, old_salt, generation, salt, latest, previous)
     WHERE sessions.tenant_id = $1 AND sessions.id = new.id AND sessions.salt = new.old_salt
       AND sessions.generation = new.generation
       AND sessions.id = ANY (ARRAY(
            SELECT id FROM sessions WHERE tenant_id = $1 AND id = ANY ($2) ORDER BY id FOR UPDATE SKIP LOCKED))",
);

/// Gives sessions a new salt and the master key `present`, and stores the digests of their tokens.
pub async fn carry(
    connection: &PooledConnection,
    tenant: TenantId,
    sessions: &CarriedSessions<'_>,
    present: KeyId,
) -> Result<(), Error> {
    let [latest, previous] = &sessions.digests;
    let present = present.to_column();
    let params: [&(dyn ToSql + Sync); 8] = [
        &tenant.uuid(),
        &sessions.ids,
        &sessions.old_salts,
        &sessions.generations,
        &sessions.new_salts,
        latest,
        previous,
        &present,
    ];
    connection.query(&CARRY, &params).await?;
    Ok(())
}
