//! The keys that sign access tokens: which there are, which one signs, which ones are accepted.
//!
//! A key is published as soon as it is made and signs a while later, so that whoever verifies tokens has seen
//! it by then; and it is accepted until the last token that it signed has ended. All of that is instants in
//! a table, which is read once a second: a key that an operator refuses is refused everywhere within that
//! time. A token of a key that is not known yet makes us look at once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use serde_json::Value;
use uuid::Uuid;

use super::{
    Sealed,
    access::LIFETIME,
    signing_key::{Algorithm, SigningKey, Unusable},
    table::{self, NewKey, Times},
};
use crate::{
    callers::Operator,
    db::{Connection, Db, Error, Transaction},
    keys::SealingKey,
};

/// How long what was read is believed.
const REMEMBERED: Duration = Duration::from_secs(1);
/// How much longer than its last token a key is accepted, because clocks differ.
const MARGIN: SignedDuration = SignedDuration::from_mins(1);

impl From<Unusable> for Error {
    fn from(unusable: Unusable) -> Self {
        Self::Failed(unusable.to_string())
    }
}

/// The keys as they were read.
struct Known {
    keys: Vec<(Arc<SigningKey>, Times)>,
    /// When reading began.
    read: Instant,
}

/// The keys that sign access tokens.
pub struct Keyring {
    db: Arc<Db>,
    sealing: SealingKey,
    known: ArcSwapOption<Known>,
    /// Held while reading: however many ask, the database is asked once, and all are told if it does not answer.
    reading: tokio::sync::Mutex<Option<(Instant, String)>>,
}

impl Keyring {
    /// The keys in the home database.
    pub fn new(db: Arc<Db>, sealing: SealingKey) -> Self {
        Self {
            db,
            sealing,
            known: ArcSwapOption::empty(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// The key that signs at `now`; where clocks differ that may be one that is only about to.
    pub(super) async fn signing(&self, now: Timestamp) -> Result<Arc<SigningKey>, Error> {
        let newest = |known: &Known| {
            let signing = known.keys.iter().filter(|(_, times)| times.signs(now));
            let newest = signing.max_by_key(|(key, times)| (times.signs_from, key.id));
            newest.or(known.keys.first()).map(|(key, _)| key.clone())
        };
        let found = self.by_fresh(Instant::now(), newest).await?;
        found.ok_or_else(|| Error::Failed("there is no key that signs access tokens".to_owned()))
    }

    /// The key whose tokens begin with this header, if it is accepted.
    pub(super) async fn with_header(
        &self,
        header: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<SigningKey>>, Error> {
        let asked = Instant::now();
        let find = |known: &Known| {
            let mut all = known.keys.iter();
            let found = all.find(|(key, times)| key.header == header && times.accepts(now));
            found.map(|(key, _)| key.clone())
        };
        if let Some(key) = self.by_fresh(asked, find).await? {
            return Ok(Some(key));
        }
        // It may have been made a moment ago, by another instance.
        Ok(find(&*self.read_after(asked).await?))
    }

    /// Whether tokens that this key has signed are accepted at `now`.
    pub(super) async fn accepts(
        &self,
        key: Uuid,
        instant: Instant,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let accepts = |known: &Known| {
            let mut all = known.keys.iter();
            all.any(|(known, times)| known.id == key && times.accepts(now))
        };
        self.by_fresh(instant, accepts).await
    }

    /// All keys by which tokens can be verified now or soon, as they are published.
    pub async fn published(&self, now: Timestamp) -> Result<Vec<Value>, Error> {
        let published = |known: &Known| {
            let accepted = known.keys.iter().filter(|(_, times)| times.accepts(now));
            accepted.map(|(key, _)| key.jwk()).collect()
        };
        self.by_fresh(Instant::now(), published).await
    }

    /// What the keys say as they were not long before `instant`.
    async fn by_fresh<T>(
        &self,
        instant: Instant,
        say: impl FnOnce(&Known) -> T,
    ) -> Result<T, Error> {
        if let Some(known) = &*self.known.load()
            && instant.saturating_duration_since(known.read) < REMEMBERED
        {
            return Ok(say(known));
        }
        let long_ago = instant.checked_sub(REMEMBERED).unwrap_or(instant);
        // Boxed, because it is rare and large, and every request would carry the place for it along.
        Ok(say(&*Box::pin(self.read_after(long_ago)).await?))
    }

    /// The keys as they were at some time after `instant`.
    async fn read_after(&self, instant: Instant) -> Result<Arc<Known>, Error> {
        let mut reading = self.reading.lock().await;
        let before = self.known.load_full();
        if let Some(known) = before.as_ref().filter(|known| known.read > instant) {
            return Ok(known.clone());
        }
        if let Some((_, why)) = reading.as_ref().filter(|(failed, _)| *failed > instant) {
            return Err(Error::Unavailable(why.clone()));
        }
        let read = Instant::now();
        let mut keys = Vec::new();
        let rows = match self.db.home() {
            Ok(home) => table::read(home).await,
            Err(error) => Err(error),
        };
        let rows =
            rows.inspect_err(|error| *reading = Some((Instant::now(), error.to_string())))?;
        for (id, algorithm, sealed, times) in rows {
            let mut opened = before.iter().flat_map(|known| &known.keys);
            let key = match opened.find(|(key, _)| key.id == id) {
                Some((key, _)) => key.clone(),
                None => Arc::new(self.open(id, algorithm, &sealed)?),
            };
            keys.push((key, times));
        }
        let known = Arc::new(Known { keys, read });
        self.known.store(Some(known.clone()));
        Ok(known)
    }

    fn open(&self, id: Uuid, algorithm: Algorithm, sealed: &Sealed) -> Result<SigningKey, Error> {
        let opened = self.sealing.open(sealed, &owner(id));
        let opened = opened.map_err(|error| Error::Failed(error.to_string()))?;
        let private = BASE64_STANDARD.decode(opened.expose_secret());
        let private = private.map_err(|_| Unusable)?;
        Ok(SigningKey::open(id, algorithm, &private)?)
    }
}

/// For whom a private key is sealed: moved to another row, it does not open.
fn owner(id: Uuid) -> String {
    format!("signing key {}", id.simple())
}

/// How a new key takes over.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    /// How long the new key is published before it signs.
    pub after: SignedDuration,
    /// Whether tokens of older keys are refused from now on, as after a leak.
    pub refuse_old: bool,
}

/// Makes a key that takes over from the others; answers its id and when it begins to sign.
pub async fn rotate(
    home: &mut Connection,
    operator: Operator,
    sealing: &SealingKey,
    algorithm: Algorithm,
    rotation: Rotation,
) -> Result<(Uuid, Timestamp), Error> {
    let tx = home.begin();
    let first = table::lock_and_see_none(&tx).await?;
    let later = |instant: Timestamp, time| instant.saturating_add(time).unwrap_or(instant);
    let signs_from = if first {
        operator.now
    } else {
        later(operator.now, rotation.after)
    };
    if rotation.refuse_old {
        table::refuse_all(&tx).await?;
    } else {
        table::retire_all(&tx, later(signs_from, LIFETIME + MARGIN)).await?;
    }
    let id = insert(&tx, operator, sealing, algorithm, signs_from).await?;
    tx.commit().await?;
    Ok((id, signs_from))
}

/// Makes the first key, if there is none.
pub async fn ensure_key(
    home: &mut Connection,
    operator: Operator,
    sealing: &SealingKey,
) -> Result<(), Error> {
    let tx = home.begin();
    if table::lock_and_see_none(&tx).await? {
        insert(&tx, operator, sealing, Algorithm::EdDsa, operator.now).await?;
        tx.commit().await?;
    }
    Ok(())
}

async fn insert(
    tx: &Transaction<'_>,
    operator: Operator,
    sealing: &SealingKey,
    algorithm: Algorithm,
    signs_from: Timestamp,
) -> Result<Uuid, Error> {
    let id = operator.ids.uuid(operator.now);
    let private = SigningKey::generate(algorithm)?;
    let key = SigningKey::open(id, algorithm, &private)?;
    let new = NewKey {
        id,
        algorithm,
        public: key.public(),
        private: sealing.seal(&BASE64_STANDARD.encode(private), &owner(id)),
        created_at: operator.now,
        signs_from,
    };
    table::insert(tx, &new).await?;
    Ok(id)
}
