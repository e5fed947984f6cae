//! Read-through cache of clients by API key, of the origins that they allow, and of staff members by cookie.
//!
//! Each change of a client or of its tenant's settings sends a notification that invalidates the
//! tenant's clients in every instance. Every notification invalidates the staff members, who are few. The cache is used only while notifications arrive; see
//! [`ReadThroughCache`]. So a client that is disabled, rotated or changed keeps working as before for
//! half a second at most, and so does a staff member who is removed or signs out.

use std::{sync::Arc, time::Instant};

use axum::http::HeaderValue;
use metrics::Counter;
use perennial_domain::{ClientId, ClientKind, Id, StaffId};
use quick_cache::sync::Cache;
use siphasher::sip128::SipHasher13;
use uuid::Uuid;

use super::{
    Principal, ResolvedPrincipal, client_lookup_sql, hash_api_key,
    refusals::Refusals,
    staff,
    tenants::table::{CHANNEL, STAFF_PAYLOAD},
};
use crate::{
    clock::Clock,
    db::{Databases, Error, HOME, Notification, ReadThroughCache},
    http::rate_limit::RateLimit,
    randomness::Randomness,
};

const MAX_ENTRIES: usize = 100_000;
const MAX_STAFF_ENTRIES: usize = 10_000;
/// The longest origin: `https://`, a host name of 253 bytes, and a port with its colon.
pub(super) const MAX_ORIGIN_BYTES: usize = 8 + 253 + 6;

pub struct ClientCache {
    db: Arc<Databases>,
    clock: Clock,
    lookups: Arc<CachedLookups>,
    database_reads: Counter,
    /// Keys that belonged to a secret client at the last lookup. Not used for authorization.
    secret_keys: Cache<u128, ()>,
    /// Hot path: cache keys are SipHash with a random key, instead of the stored SHA-256
    /// (measured: session check −3,000 instructions on processors without SHA extensions). The
    /// random key makes collisions unpredictable.
    hasher: SipHasher13,
}

struct CachedLookups {
    clients: ReadThroughCache<u128, Arc<ResolvedPrincipal>>,
    /// An entry is used for a minute at most, and reading it stores that the session is used.
    staff: ReadThroughCache<u128, Arc<ResolvedPrincipal>>,
    /// Origins that a publishable client allows. Other origins are not cached, and neither is the
    /// header itself: it would keep the whole head of its request in memory.
    origins: ReadThroughCache<u128, ()>,
}

impl CachedLookups {
    fn apply(&self, notification: Notification<'_>) {
        self.staff.invalidate_all();
        if matches!(notification, Notification::Payload(STAFF_PAYLOAD)) {
            return;
        }
        let tenant: Option<Uuid> = match notification {
            Notification::Payload(payload) => payload.parse().ok(),
            Notification::MaybeMissed => None,
        };
        match tenant {
            Some(tenant) => self
                .clients
                .invalidate(|known| known.tenant.id.uuid() == tenant),
            None => self.clients.invalidate_all(),
        }
        // An origin can be allowed by clients of several tenants.
        self.origins.invalidate_all();
    }
}

impl ClientCache {
    pub fn new(db: Arc<Databases>, clock: Clock) -> Self {
        Self {
            db,
            clock,
            lookups: Arc::new(CachedLookups {
                clients: ReadThroughCache::new(MAX_ENTRIES),
                staff: ReadThroughCache::new(MAX_STAFF_ENTRIES),
                origins: ReadThroughCache::new(MAX_ENTRIES),
            }),
            database_reads: metrics::counter!("perennial_client_reads_total"),
            secret_keys: Cache::new(MAX_ENTRIES),
            hasher: SipHasher13::new_with_key(&Randomness.bytes()),
        }
    }

    /// Starts listening for changed clients. Until then, entries are used for 1 s.
    pub(super) fn start(&self) {
        let Some((_, home)) = self.db.databases().find(|(cell, _)| *cell == HOME) else {
            return;
        };
        let lookups = self.lookups.clone();
        let listener = home.listen(CHANNEL, move |changed| lookups.apply(changed));
        self.lookups.clients.use_listener(listener.clone());
        self.lookups.staff.use_listener(listener.clone());
        self.lookups.origins.use_listener(listener);
    }

    /// Creates the record of refusals, with this cache's database and clock.
    pub(super) fn refusals(&self) -> Refusals {
        Refusals::new(self.db.clone(), self.clock)
    }

    /// Returns the cache key of an API key or an origin.
    fn cache_key(&self, bytes: &[u8]) -> u128 {
        self.hasher.hash(bytes).as_u128()
    }

    /// Returns whether the key belonged to a secret client at its last lookup.
    pub(super) fn was_secret(&self, api_key: &[u8]) -> bool {
        self.secret_keys.get(&self.cache_key(api_key)).is_some()
    }

    /// Returns whether any publishable client allows this origin.
    pub(super) async fn is_allowed_origin(&self, origin: &HeaderValue) -> Result<bool, Error> {
        let text = origin.to_str().ok();
        let Some(text) = text.filter(|text| text.len() <= MAX_ORIGIN_BYTES) else {
            return Ok(false);
        };
        let load = async {
            self.database_reads.increment(1);
            let is_allowed = client_lookup_sql::is_allowed_origin(self.db.home()?, text).await?;
            Ok(is_allowed.then_some(()))
        };
        let cache_key = self.cache_key(text.as_bytes());
        let allowed = self.lookups.origins.get_or_load(&cache_key, load).await?;
        Ok(allowed.is_some())
    }

    /// Returns the client if it is cached.
    pub(super) fn get(&self, api_key: &[u8], now: Instant) -> Option<Arc<ResolvedPrincipal>> {
        let found = self.lookups.clients.get(&self.cache_key(api_key), now);
        found.filter(|found| self.is_valid(found))
    }

    /// Returns whether the API key or the session has not expired since it was read.
    fn is_valid(&self, found: &ResolvedPrincipal) -> bool {
        { found.expires_at }.is_none_or(|expires_at| self.clock.now() < expires_at)
    }

    /// Returns the client from the cache or the database, with its counter in `limit`.
    pub(super) async fn find(
        &self,
        api_key: &[u8],
        limit: &RateLimit<ClientId>,
    ) -> Result<Option<Arc<ResolvedPrincipal>>, Error> {
        let cache_key = self.cache_key(api_key);
        let load = async {
            self.database_reads.increment(1);
            let hash = hash_api_key(api_key);
            let row = client_lookup_sql::find(self.db.home()?, &hash, self.clock.now()).await?;
            let Some((tenant, client, expires_at)) = row else {
                self.secret_keys.remove(&cache_key);
                return Ok(None);
            };
            if client.kind == ClientKind::Secret {
                self.secret_keys.insert(cache_key, ());
            }
            let requests = limit.counter(&client.id);
            Ok(Some(Arc::new(ResolvedPrincipal {
                tenant,
                principal: Principal::Client(client),
                expires_at,
                requests,
            })))
        };
        let found = self.lookups.clients.get_or_load(&cache_key, load).await?;
        Ok(found.filter(|found| self.is_valid(found)))
    }

    /// Returns the staff member with this cookie from the cache or the database, with the member's counter in `limit`. Unless
    /// `may_load`, only the cache is used.
    pub(super) async fn find_staff(
        &self,
        token: &[u8],
        limit: &RateLimit<StaffId>,
        may_load: bool,
    ) -> Result<Option<Arc<ResolvedPrincipal>>, Error> {
        let cache_key = self.cache_key(token);
        if !may_load {
            let found = self.lookups.staff.get(&cache_key, Instant::now());
            return Ok(found.filter(|found| self.is_valid(found)));
        }
        let load = async {
            let (hash, now) = (staff::hash(token), self.clock.now());
            let found = staff::table::use_session(self.db.home()?, &hash, now).await?;
            Ok(found.map(|(tenant, session)| {
                Arc::new(ResolvedPrincipal {
                    tenant,
                    expires_at: Some(session.expires_at),
                    requests: limit.counter(&session.member.id),
                    principal: Principal::Staff(session),
                })
            }))
        };
        let found = self.lookups.staff.get_or_load(&cache_key, load).await?;
        Ok(found.filter(|found| self.is_valid(found)))
    }
}
