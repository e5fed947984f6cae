//! The sessions of one cell that are known to live.
//!
//! A session is looked up, and while the answer is on its way somebody ends it: the answer must not be
//! remembered. So whoever looks takes a [`Place`] first, and fills it afterwards; a word about that session,
//! or about all of them, in between makes the place worthless.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use perennial_domain::{Id, SessionId, TenantId};
use quick_cache::sync::Cache;
use uuid::Uuid;

use super::SignedIn;

/// How many sessions are remembered; beyond, the least used are forgotten.
const MOST: usize = 200_000;
/// Sessions share so many counts of what was said: a word about one spoils the places of few others.
const COUNTS: usize = 256;

/// Where a session can be remembered, if nothing has been said of it meanwhile.
pub(super) struct Place {
    tenant: TenantId,
    session: Uuid,
    count: u64,
}

/// What is remembered, and since which word about all of them.
#[derive(Clone)]
struct Remembered {
    tenant: TenantId,
    found: Arc<SignedIn>,
    era: u64,
}

pub(super) struct Memory {
    sessions: Cache<Uuid, Remembered>,
    /// How often something was said of a session with this remainder.
    counts: [Mutex<u64>; COUNTS],
    /// How often something was said of all.
    era: AtomicU64,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            sessions: Cache::new(MOST),
            counts: std::array::from_fn(|_| Mutex::new(0)),
            era: AtomicU64::new(0),
        }
    }

    fn count(&self, session: Uuid) -> MutexGuard<'_, u64> {
        let [.., random] = session.into_bytes();
        let [first, ..] = &self.counts;
        // There are as many counts as a byte has values.
        let count = self.counts.get(usize::from(random)).unwrap_or(first);
        count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of this tenant, if it is remembered.
    pub(super) fn get(&self, tenant: TenantId, session: SessionId) -> Option<Arc<SignedIn>> {
        let remembered = self.sessions.get(&session.uuid())?;
        let holds = remembered.era == self.era.load(Ordering::Acquire);
        (holds && remembered.tenant == tenant).then_some(remembered.found)
    }

    /// A place for a session that is about to be looked up.
    pub(super) fn place(&self, tenant: TenantId, session: SessionId) -> Place {
        let session = session.uuid();
        let count = *self.count(session);
        Place {
            tenant,
            session,
            count,
        }
    }

    /// Remembers what was found, unless something was said of it meanwhile.
    pub(super) fn fill(&self, place: &Place, found: Arc<SignedIn>) {
        // Held until it is remembered: what is said next finds it there.
        let count = self.count(place.session);
        if *count == place.count {
            let era = self.era.load(Ordering::Acquire);
            self.sessions.insert(
                place.session,
                Remembered {
                    tenant: place.tenant,
                    found,
                    era,
                },
            );
        }
    }

    /// Something was said of this session.
    pub(super) fn forget(&self, session: Uuid) {
        let mut count = self.count(session);
        *count += 1;
        self.sessions.remove(&session);
    }

    /// Something may have been said of any of them.
    pub(super) fn forget_all(&self) {
        // In this order: a place that is being filled is filled in the old era.
        for count in &self.counts {
            *count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        self.era.fetch_add(1, Ordering::AcqRel);
        self.sessions.clear();
    }
}
