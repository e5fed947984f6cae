//! The directory: from the header `client-id` to a tenant and a client.
//!
//! Every request needs it, so what was found is remembered for a second. A client that is disabled,
//! rotated or changed is therefore treated as before for at most that long, on every instance, with
//! nothing that has to be kept alive for it. What was not found is not remembered.

use std::{sync::Arc, time::Duration};

use moka::future::Cache;
use sha2::{Digest, Sha256};

use super::{Known, table};
use crate::{
    clock::Clock,
    db::{Db, Error},
};

/// How long a client is remembered.
const REMEMBERED: Duration = Duration::from_secs(1);
/// How many clients are remembered at most.
const MOST: u64 = 100_000;

/// The hash under which a value of the header is stored.
pub(super) type ValueHash = [u8; 32];

/// Hashes a value of the header. It has 256 random bits (or is no secret at all), so one round of
/// SHA-256 is enough: there is nothing to guess.
pub(super) fn hash(value: &[u8]) -> ValueHash {
    Sha256::digest(value).into()
}

/// Looks up clients.
#[derive(Clone)]
pub struct Directory {
    db: Arc<Db>,
    clock: Clock,
    remembered: Cache<ValueHash, Arc<Known>>,
}

/// Why a look-up gave nothing.
enum Nothing {
    Unknown,
    Failed(Error),
}

impl Directory {
    /// A directory over the home database.
    pub fn new(db: Arc<Db>, clock: Clock) -> Self {
        let remembered = Cache::builder()
            .max_capacity(MOST)
            .time_to_live(REMEMBERED)
            .build();
        Self {
            db,
            clock,
            remembered,
        }
    }

    /// Who has this value of the header, if anybody.
    pub(super) async fn find(&self, value: &[u8]) -> Result<Option<Arc<Known>>, Error> {
        let hash = hash(value);
        if let Some(known) = self.remembered.get(&hash).await {
            return Ok(Some(known));
        }
        // However many requests ask at once, the database is asked once.
        let found = self.remembered.try_get_with(hash, async {
            let home = self.db.home().map_err(Nothing::Failed)?;
            match table::find(home, &hash, self.clock.now()).await {
                Ok(Some(known)) => Ok(Arc::new(known)),
                Ok(None) => Err(Nothing::Unknown),
                Err(error) => Err(Nothing::Failed(error)),
            }
        });
        match found.await {
            Ok(known) => Ok(Some(known)),
            Err(nothing) => match &*nothing {
                Nothing::Unknown => Ok(None),
                Nothing::Failed(Error::Failed(cause)) => Err(Error::Failed(cause.clone())),
                Nothing::Failed(error) => Err(Error::Unavailable(error.to_string())),
            },
        }
    }
}
