//! The set of keys that sign access tokens.
//!
//! A new key is published immediately and signs after a delay, so that other services have fetched
//! it by then. It is accepted until the last token that it signed has expired. These times are
//! columns of `signing_keys`. The table is read once a second, so a key that an operator refuses is
//! rejected by every instance within a second. A token with an unknown key triggers an immediate
//! read.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::jwk::Jwk;
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::{
    access_token,
    signing_key::{SigningAlgorithm, SigningKey, UnusableKey},
    table::{self, KeyValidity, NewSigningKey},
};
use crate::{
    auth::SystemContext,
    crypto::{DerivedKeys, SealedSecret},
    db::{Databases, Error, PooledConnection, Transaction},
};

const CACHE_TTL: Duration = Duration::from_secs(1);
/// How long a key is accepted after its last token expires, for differing clocks.
const CLOCK_MARGIN: SignedDuration = SignedDuration::from_mins(1);

impl From<UnusableKey> for Error {
    fn from(unusable: UnusableKey) -> Self {
        Self::Internal(unusable.to_string())
    }
}

struct LoadedKeys {
    /// In the order in which they start to sign.
    keys: Vec<(Arc<SigningKey>, KeyValidity)>,
    /// When the read started.
    read_at: Instant,
}

impl LoadedKeys {
    /// Returns the newest key that can sign.
    fn newest(&self, now: Timestamp) -> Option<&(Arc<SigningKey>, KeyValidity)> {
        let keys = self.keys.iter();
        keys.filter(|(_, validity)| validity.can_sign(now))
            .max_by_key(|(key, validity)| (validity.signs_from, key.id))
    }
}

pub struct Keyring {
    db: Arc<Databases>,
    keys: DerivedKeys,
    /// Hot path: read without a lock or reference count (measured: session check from 0.71 to 0.74
    /// of the throughput of the benchmark's baseline, `bench/bare`).
    loaded: ArcSwapOption<LoadedKeys>,
    /// Held during a read, so that concurrent requests share one query. Holds the time and message
    /// of the last error.
    last_error: tokio::sync::Mutex<Option<(Instant, String)>>,
}

impl Keyring {
    pub fn new(db: Arc<Databases>, keys: DerivedKeys) -> Self {
        Self {
            db,
            keys,
            loaded: ArcSwapOption::empty(),
            last_error: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the newest key that can sign. Falls back to a key that signs soon, in case clocks
    /// differ.
    pub(super) async fn signing_key(&self, now: Timestamp) -> Result<Arc<SigningKey>, Error> {
        let newest = |loaded: &LoadedKeys| {
            let newest = loaded.newest(now).or(loaded.keys.first());
            newest.map(|(key, _)| key.clone())
        };
        let key = self.with_keys(Instant::now(), newest).await?;
        key.ok_or_else(|| Error::Internal("there is no signing key".to_owned()))
    }

    /// Returns since when the current key signs.
    pub async fn signs_since(&self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let signs_from =
            |loaded: &LoadedKeys| loaded.newest(now).map(|(_, validity)| validity.signs_from);
        self.with_keys(Instant::now(), signs_from).await
    }

    /// Returns the accepted key whose tokens have this encoded header.
    pub(super) async fn find_by_header(
        &self,
        header: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<SigningKey>>, Error> {
        let started_at = Instant::now();
        let find = |loaded: &LoadedKeys| {
            let mut keys = loaded.keys.iter();
            let found =
                keys.find(|(key, validity)| key.header == header && validity.is_accepted(now));
            found.map(|(key, _)| key.clone())
        };
        if let Some(key) = self.with_keys(started_at, find).await? {
            return Ok(Some(key));
        }
        // Another instance may have created the key after the last read.
        Ok(find(&*self.load_after(started_at).await?))
    }

    /// Returns whether tokens signed with this key are accepted.
    pub(super) async fn accepts(
        &self,
        key: Uuid,
        instant: Instant,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let accepts = |loaded: &LoadedKeys| {
            let mut keys = loaded.keys.iter();
            keys.any(|(candidate, validity)| candidate.id == key && validity.is_accepted(now))
        };
        self.with_keys(instant, accepts).await
    }

    /// Returns the public keys that verify tokens now or soon.
    pub async fn public_keys(&self, now: Timestamp) -> Result<Vec<Jwk>, Error> {
        let public_keys = |loaded: &LoadedKeys| {
            let accepted = loaded
                .keys
                .iter()
                .filter(|(_, validity)| validity.is_accepted(now));
            accepted.map(|(key, _)| key.jwk()).collect::<Result<_, _>>()
        };
        Ok(self.with_keys(Instant::now(), public_keys).await??)
    }

    /// Calls `read` with keys that were loaded at most [`CACHE_TTL`] before `instant`.
    async fn with_keys<T>(
        &self,
        instant: Instant,
        read: impl FnOnce(&LoadedKeys) -> T,
    ) -> Result<T, Error> {
        if let Some(loaded) = &*self.loaded.load()
            && instant.saturating_duration_since(loaded.read_at) < CACHE_TTL
        {
            return Ok(read(loaded));
        }
        let oldest = instant.checked_sub(CACHE_TTL).unwrap_or(instant);
        // Hot path: boxed, so that the rarely used future does not enlarge every request's future
        // (measured: session check −7,000 instructions for all such boxes).
        Ok(read(&*Box::pin(self.load_after(oldest)).await?))
    }

    /// Returns keys whose read started after `instant`.
    async fn load_after(&self, instant: Instant) -> Result<Arc<LoadedKeys>, Error> {
        let mut last_error = self.last_error.lock().await;
        let previous = self.loaded.load_full();
        if let Some(loaded) = previous.as_ref().filter(|keys| keys.read_at > instant) {
            return Ok(loaded.clone());
        }
        if let Some((_, message)) = last_error.as_ref().filter(|(at, _)| *at > instant) {
            return Err(Error::Unavailable(message.clone()));
        }
        let read_at = Instant::now();
        let rows = match self.db.home() {
            Ok(home) => table::list_accepted(home).await,
            Err(error) => Err(error),
        };
        let rows =
            rows.inspect_err(|error| *last_error = Some((Instant::now(), error.to_string())))?;
        let mut keys = Vec::new();
        for (row, sealed) in rows {
            let mut decrypted = previous.iter().flat_map(|loaded| &loaded.keys);
            let key = match decrypted.find(|(key, _)| key.id == row.id) {
                Some((key, _)) => key.clone(),
                None => Arc::new(self.decrypt(row.id, row.algorithm, &sealed)?),
            };
            keys.push((key, row.validity));
        }
        let loaded = Arc::new(LoadedKeys { keys, read_at });
        self.loaded.store(Some(loaded.clone()));
        Ok(loaded)
    }

    fn decrypt(
        &self,
        id: Uuid,
        algorithm: SigningAlgorithm,
        sealed: &SealedSecret,
    ) -> Result<SigningKey, Error> {
        let pkcs8 = self.keys.open(sealed, &sealing_owner(id));
        let pkcs8 = pkcs8.map_err(|error| Error::Internal(error.to_string()))?;
        let pkcs8 = BASE64_STANDARD.decode(pkcs8.expose_secret());
        let pkcs8 = pkcs8.map_err(|_| UnusableKey)?;
        Ok(SigningKey::from_pkcs8(id, algorithm, &pkcs8)?)
    }
}

/// Returns the owner for which a private key is encrypted: its row. Copied to another row, the key
/// cannot be decrypted.
pub fn sealing_owner(id: Uuid) -> String {
    format!("signing key {}", id.simple())
}

/// How a new key replaces the others.
#[derive(Debug, Clone, Copy)]
pub struct KeyRotation {
    /// How long the new key is published before it signs.
    pub after: SignedDuration,
    /// Whether tokens of older keys are rejected immediately, as after a leak.
    pub refuse_old: bool,
}

/// Creates a key that replaces the others. Returns its id and when it starts to sign.
pub async fn rotate_signing_key(
    home: &mut PooledConnection,
    context: SystemContext,
    keys: &DerivedKeys,
    algorithm: SigningAlgorithm,
    rotation: KeyRotation,
) -> Result<(Uuid, Timestamp), Error> {
    let tx = home.begin();
    let is_first = table::lock_and_check_empty(&tx).await?;
    let add = |instant: Timestamp, duration| instant.saturating_add(duration).unwrap_or(instant);
    let signs_from = if is_first {
        context.now
    } else {
        add(context.now, rotation.after)
    };
    if rotation.refuse_old {
        table::refuse_all(&tx).await?;
    } else {
        table::retire_all(&tx, add(signs_from, access_token::TTL + CLOCK_MARGIN)).await?;
    }
    let id = insert(&tx, context, keys, algorithm, signs_from).await?;
    tx.commit().await?;
    Ok((id, signs_from))
}

/// Creates the first key if there is none.
pub async fn ensure_signing_key(
    home: &mut PooledConnection,
    context: SystemContext,
    keys: &DerivedKeys,
) -> Result<(), Error> {
    let tx = home.begin();
    if table::lock_and_check_empty(&tx).await? {
        let algorithm = SigningAlgorithm::EdDsa;
        insert(&tx, context, keys, algorithm, context.now).await?;
        tx.commit().await?;
    }
    Ok(())
}

async fn insert(
    tx: &Transaction<'_>,
    context: SystemContext,
    keys: &DerivedKeys,
    algorithm: SigningAlgorithm,
    signs_from: Timestamp,
) -> Result<Uuid, Error> {
    let id = context.ids.generate_uuid(context.now);
    let pkcs8 = SigningKey::generate(algorithm)?;
    let key = SigningKey::from_pkcs8(id, algorithm, &pkcs8)?;
    let new = NewSigningKey {
        id,
        algorithm,
        public: key.public_key(),
        private: keys.seal(&BASE64_STANDARD.encode(pkcs8), &sealing_owner(id)),
        created_at: context.now,
        signs_from,
    };
    table::insert(tx, &new).await?;
    Ok(id)
}
