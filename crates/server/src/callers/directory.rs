//! The directory: from the header `client-id` to a tenant and a client.
//!
//! Every request needs it, so what was found is remembered for a second. A client that is disabled,
//! rotated or changed is therefore treated as before for at most that long, on every instance, with
//! nothing that has to be kept alive for it. What was not found is not remembered.

use std::{hash::Hash, sync::Arc, time::Duration};

use axum::http::HeaderValue;
use moka::future::Cache;
use perennial_domain::ClientKind;
use sha2::{Digest, Sha256};
use siphasher::sip128::SipHasher13;

use super::{Known, clients::table};
use crate::{
    clock::Clock,
    db::{Db, Error},
    randomness::Randomness,
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
    /// By a quicker hash than the stored one, whose key nobody knows: nobody can make two values that look the same.
    remembered: Cache<u128, Arc<Known>>,
    pages: Cache<HeaderValue, bool>,
    /// Values that a secret client had when they were last looked up. A hint, never a permission.
    servers: Cache<u128, ()>,
    quick_hash: SipHasher13,
}

/// Why a look-up gave nothing.
enum Nothing {
    Unknown,
    Failed(Error),
}

impl Directory {
    /// A directory over the home database.
    pub fn new(db: Arc<Db>, clock: Clock) -> Self {
        Self {
            db,
            clock,
            remembered: for_a_moment(),
            pages: for_a_moment(),
            servers: Cache::builder()
                .max_capacity(MOST)
                .time_to_live(Duration::from_hours(1))
                .build(),
            quick_hash: SipHasher13::new_with_key(&Randomness.bytes()),
        }
    }

    fn quick_hash(&self, value: &[u8]) -> u128 {
        self.quick_hash.hash(value).as_u128()
    }

    /// Whether this value was a secret client's not long ago, and so is worth looking up again.
    pub(super) async fn was_a_servers(&self, value: &[u8]) -> bool {
        self.servers.get(&self.quick_hash(value)).await.is_some()
    }

    /// Whether a page of this origin may use any publishable client at all.
    pub(super) async fn is_page_of_a_client(&self, origin: &HeaderValue) -> Result<bool, Error> {
        if let Some(found) = self.pages.get(origin).await {
            return Ok(found);
        }
        let Ok(text) = origin.to_str() else {
            return Ok(false);
        };
        let found = table::is_page_of_a_client(self.db.home()?, text).await?;
        self.pages.insert(origin.clone(), found).await;
        Ok(found)
    }

    /// Who has this value of the header, as far as that is remembered.
    pub(super) async fn remembered(&self, value: &[u8]) -> Option<Arc<Known>> {
        self.remembered.get(&self.quick_hash(value)).await
    }

    /// Who has this value of the header, if anybody.
    pub(super) async fn find(&self, value: &[u8]) -> Result<Option<Arc<Known>>, Error> {
        let quick_hash = self.quick_hash(value);
        // However many requests ask at once, the database is asked once.
        let found = self.remembered.try_get_with(quick_hash, async {
            let home = self.db.home().map_err(Nothing::Failed)?;
            match table::find(home, &hash(value), self.clock.now()).await {
                Ok(Some(known)) => Ok(Arc::new(known)),
                Ok(None) => Err(Nothing::Unknown),
                Err(error) => Err(Nothing::Failed(error)),
            }
        });
        match found.await {
            Ok(known) => {
                if known.client.kind == ClientKind::Secret {
                    self.servers.insert(quick_hash, ()).await;
                }
                Ok(Some(known))
            }
            Err(nothing) => match &*nothing {
                Nothing::Unknown => Ok(None),
                Nothing::Failed(error) => Err(error.clone()),
            },
        }
    }
}

/// What is remembered for a moment.
fn for_a_moment<K, V>() -> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    Cache::builder()
        .max_capacity(MOST)
        .time_to_live(REMEMBERED)
        .build()
}
