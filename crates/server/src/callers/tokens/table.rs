//! The table `signing_keys`: all its SQL.

use jiff::Timestamp;
use uuid::Uuid;

use super::{Algorithm, Sealed};
use crate::db::{Connection, Engine, Error, Sql, Transaction, row::Reader};

/// When a key is used.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// From when on it signs, unless a newer one does.
    pub signs_from: Timestamp,
    /// Until when its tokens are accepted; `None` if no newer one was made.
    pub accepted_until: Option<Timestamp>,
}

impl Times {
    /// Whether its tokens are accepted.
    pub fn accepts(self, now: Timestamp) -> bool {
        self.accepted_until.is_none_or(|until| now < until)
    }

    /// Whether it may sign.
    pub fn signs(self, now: Timestamp) -> bool {
        self.signs_from <= now && self.accepts(now)
    }
}

/// In one row, because that is what a lane carries.
static READ: Sql = Sql::new(
    "SELECT array_agg(id ORDER BY signs_from, id) AS ids, array_agg(algorithm ORDER BY signs_from, id) AS algorithms,
            array_agg(private_key ORDER BY signs_from, id) AS private_keys,
            array_agg(signs_from ORDER BY signs_from, id) AS signs_from,
            array_agg(accepted_until ORDER BY signs_from, id) AS accepted_until
     FROM signing_keys WHERE accepted_until IS NULL OR accepted_until > now()",
);

/// All keys that are accepted now or later.
pub(super) async fn read(home: &Engine) -> Result<Vec<(Uuid, Algorithm, Sealed, Times)>, Error> {
    let Some(row) = home.read(&READ, &[]).await? else {
        return Ok(Vec::new());
    };
    let ids: Option<Vec<Uuid>> = row.try_get("ids")?;
    let algorithms: Option<Vec<&str>> = row.try_get("algorithms")?;
    let sealed: Option<Vec<Vec<u8>>> = row.try_get("private_keys")?;
    let signs_from: Option<Vec<Timestamp>> = row.try_get("signs_from")?;
    let accepted_until: Option<Vec<Option<Timestamp>>> = row.try_get("accepted_until")?;
    let times = signs_from.into_iter().flatten();
    let times = times.zip(accepted_until.into_iter().flatten());
    let keys = ids
        .into_iter()
        .flatten()
        .zip(algorithms.into_iter().flatten());
    let keys = keys.zip(sealed.into_iter().flatten()).zip(times);
    keys.map(
        |(((id, algorithm), sealed), (signs_from, accepted_until))| {
            let algorithm = algorithm.parse().map_err(Error::Failed)?;
            let times = Times {
                signs_from,
                accepted_until,
            };
            Ok((id, algorithm, Sealed(sealed), times))
        },
    )
    .collect()
}

static LOCK: Sql = Sql::new("LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE");
static COUNT: Sql = Sql::new("SELECT count(*) FROM signing_keys");

/// Whether there is no key at all; from then on nobody else makes one in this transaction's time.
pub(super) async fn lock_and_see_none(tx: &Transaction<'_>) -> Result<bool, Error> {
    tx.execute(&LOCK, &[]).await?;
    let rows = tx.query(&COUNT, &[]).await?;
    let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
    Ok(count == 0)
}

static RETIRE_ALL: Sql = Sql::new(
    "UPDATE signing_keys SET accepted_until = $1 WHERE accepted_until IS NULL OR accepted_until > $1",
);

/// Refuses all keys from `until` on, unless they are refused earlier.
pub(super) async fn retire_all(tx: &Transaction<'_>, until: Timestamp) -> Result<(), Error> {
    tx.execute(&RETIRE_ALL, &[&until]).await?;
    Ok(())
}

// By the clock of the database, by which keys are read too.
static REFUSE_ALL: Sql = Sql::new(
    "UPDATE signing_keys SET accepted_until = now() WHERE accepted_until IS NULL OR accepted_until > now()",
);

/// Refuses all keys from now on.
pub(super) async fn refuse_all(tx: &Transaction<'_>) -> Result<(), Error> {
    tx.execute(&REFUSE_ALL, &[]).await?;
    Ok(())
}

/// A key on its way in.
pub(super) struct NewKey<'a> {
    pub id: Uuid,
    pub algorithm: Algorithm,
    pub public: &'a [u8],
    pub private: Sealed,
    pub created_at: Timestamp,
    pub signs_from: Timestamp,
}

static INSERT: Sql = Sql::new(
    "INSERT INTO signing_keys (id, algorithm, public_key, private_key, created_at, signs_from)
     VALUES ($1, $2, $3, $4, $5, $6)",
);

pub(super) async fn insert(tx: &Transaction<'_>, key: &NewKey<'_>) -> Result<(), Error> {
    tx.execute(
        &INSERT,
        &[
            &key.id,
            &key.algorithm.as_str(),
            &key.public,
            &key.private.0,
            &key.created_at,
            &key.signs_from,
        ],
    )
    .await?;
    Ok(())
}

/// A key as it is shown in a list.
#[derive(Debug)]
pub struct Listed {
    /// Its identifier, as a token's header names it.
    pub id: Uuid,
    /// How it signs.
    pub algorithm: Algorithm,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it is used.
    pub times: Times,
}

static LIST: Sql = Sql::new(
    "SELECT id, algorithm, created_at, signs_from, accepted_until FROM signing_keys ORDER BY signs_from, id",
);

/// All keys, oldest first.
pub async fn list(home: &Connection) -> Result<Vec<Listed>, Error> {
    let rows = home.query(&LIST, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(Listed {
                id: row.try_get("id")?,
                algorithm: Reader::of(row).text("algorithm")?,
                created_at: row.try_get("created_at")?,
                times: Times {
                    signs_from: row.try_get("signs_from")?,
                    accepted_until: row.try_get("accepted_until")?,
                },
            })
        })
        .collect()
}

static REMOVE_REFUSED: Sql = Sql::new(
    "DELETE FROM signing_keys WHERE id = ANY (ARRAY(
        SELECT id FROM signing_keys WHERE accepted_until < now() - interval '30 days' LIMIT $1 FOR UPDATE SKIP LOCKED))",
);

/// Removes up to `limit` keys that have been refused for a month; answers how many.
pub async fn remove_refused(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let removed = tx.execute(&REMOVE_REFUSED, &[&limit]).await?;
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}
