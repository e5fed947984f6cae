//! The directory: from the header `client-id` to a tenant and a client.
//!
//! Every request needs it, so what was found counts for a second ([`Lately`]). A client that is disabled,
//! rotated or changed is therefore treated as before for at most that long.

use std::{sync::Arc, time::Instant};

use axum::http::HeaderValue;
use perennial_domain::{ClientId, ClientKind};
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use siphasher::sip128::SipHasher13;

use super::{Known, clients::table};
use crate::{
    clock::Clock,
    db::{Db, Error, Lately},
    http::rate::RateLimit,
    randomness::Randomness,
};

/// How many clients are remembered at most.
const MOST: usize = 100_000;

/// The hash under which a value of the header is stored.
pub(super) type ValueHash = [u8; 32];

/// Hashes a value of the header. It has 256 random bits (or is no secret at all), so one round of
/// SHA-256 is enough: there is nothing to guess.
pub(super) fn hash(value: &[u8]) -> ValueHash {
    Sha256::digest(value).into()
}

/// Looks up clients.
pub struct Directory {
    db: Arc<Db>,
    clock: Clock,
    /// By a quicker hash than the stored one, whose key nobody knows: nobody can make two values that look the same.
    clients: Lately<u128, Arc<Known>>,
    pages: Lately<HeaderValue, bool>,
    /// Values that a secret client had when they were last looked up. A hint, never a permission.
    servers: Cache<u128, ()>,
    quick_hash: SipHasher13,
}

impl Directory {
    /// A directory over the home database.
    pub fn new(db: Arc<Db>, clock: Clock) -> Self {
        Self {
            db,
            clock,
            clients: Lately::new(MOST),
            pages: Lately::new(MOST),
            servers: Cache::new(MOST),
            quick_hash: SipHasher13::new_with_key(&Randomness.bytes()),
        }
    }

    fn quick_hash(&self, value: &[u8]) -> u128 {
        self.quick_hash.hash(value).as_u128()
    }

    /// Whether this value was a secret client's not long ago, and so is worth looking up again.
    pub(super) fn was_a_servers(&self, value: &[u8]) -> bool {
        self.servers.get(&self.quick_hash(value)).is_some()
    }

    /// Whether a page of this origin may use any publishable client at all.
    pub(super) async fn is_page_of_a_client(&self, origin: &HeaderValue) -> Result<bool, Error> {
        let find = async {
            let Ok(text) = origin.to_str() else {
                return Ok(None);
            };
            let found = table::is_page_of_a_client(self.db.home()?, text).await?;
            Ok(Some(found))
        };
        Ok(self.pages.find(origin, find).await?.unwrap_or(false))
    }

    /// Who has this value of the header, as far as that is remembered.
    pub(super) fn remembered(&self, value: &[u8], now: Instant) -> Option<Arc<Known>> {
        self.clients.get(&self.quick_hash(value), now)
    }

    /// Who has this value of the header, if anybody; and what it has had of this limit.
    pub(super) async fn find(
        &self,
        value: &[u8],
        limit: &RateLimit<ClientId>,
    ) -> Result<Option<Arc<Known>>, Error> {
        let quick_hash = self.quick_hash(value);
        let find = async {
            let found = table::find(self.db.home()?, &hash(value), self.clock.now()).await?;
            let Some((tenant, client)) = found else {
                self.servers.remove(&quick_hash);
                return Ok(None);
            };
            if client.kind == ClientKind::Secret {
                self.servers.insert(quick_hash, ());
            }
            let requests = limit.count_of(&client.id);
            Ok(Some(Arc::new(Known {
                tenant,
                client,
                requests,
            })))
        };
        self.clients.find(&quick_hash, find).await
    }
}
