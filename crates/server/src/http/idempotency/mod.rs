//! Creating something once, however often it is asked for.
//!
//! A caller that gets no answer cannot know whether its request was done, and so sends it again with
//! the same `Idempotency-Key`. The key commits in the transaction of the effect: either both are
//! there, and the second request gets the first one's answer, or neither, and it is done now. While
//! the first is still running the second is told 409, at once.
//!
//! A creating handler cannot leave this out, because `201 Created` is made here and nowhere else:
//!
//! ```ignore
//! let tx = match once.begin(&mut connection, &caller.scope(), fingerprint).await? {
//!     Begun::Before(answer) => return Ok(answer),
//!     Begun::Now(tx) => tx,
//! };
//! …                                        // the effect, in `tx`
//! tx.created(location, &record).await      // keeps the key, commits, answers
//! ```

use std::ops::Deref;

use axum::{
    extract::FromRequestParts,
    http::{HeaderName, HeaderValue, request::Parts},
    response::Response,
};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    answer,
    problem::{Code, Problem},
};
use crate::{
    clock::Clock,
    db::{Connection, Error, Transaction},
};

mod table;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// How long an answer is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// Whose key it is: the same key of another client or user is another key.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// Whose data it is about.
    pub tenant: Uuid,
    /// The calling application.
    pub client: Uuid,
    /// The end user, if one is signed in.
    pub user: Option<Uuid>,
}

/// The header of a request, and what the key is for.
#[derive(Debug)]
pub struct Once {
    key: Option<String>,
    method_and_path: String,
}

impl<S: Sync> FromRequestParts<S> for Once {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let values: Vec<&HeaderValue> = parts.headers.get_all(HEADER).iter().collect();
        let key = match values.as_slice() {
            [] => None,
            [only] => Some(only.to_str().unwrap_or_default()),
            _ => Some(""),
        };
        let fit = |key: &str| {
            (1..=255).contains(&key.len()) && key.bytes().all(|b| (b' '..=b'~').contains(&b))
        };
        if key.is_some_and(|key| !fit(key)) {
            let detail = "Idempotency-Key is 1 to 255 printable ASCII characters, sent once";
            return Err(Problem::new(Code::InvalidIdempotencyKey, detail));
        }
        Ok(Self {
            key: key.map(str::to_owned),
            method_and_path: format!("{} {}", parts.method, parts.uri.path()),
        })
    }
}

/// What to do now.
pub enum Begun<'a> {
    /// It was done before; this was the answer.
    Before(Response),
    /// It is to be done now, in this transaction.
    Now(First<'a>),
}

/// A key that was given: by what it is found, and what it stands for.
struct Key {
    scope_hash: [u8; 32],
    fingerprint: [u8; 32],
}

/// The transaction of a request that is done for the first time.
pub struct First<'a> {
    tx: Transaction<'a>,
    tenant: Uuid,
    key: Option<Key>,
    now: Timestamp,
}

impl<'a> Deref for First<'a> {
    type Target = Transaction<'a>;

    fn deref(&self) -> &Transaction<'a> {
        &self.tx
    }
}

impl Once {
    /// Begins the transaction of the effect, unless it was made before.
    pub async fn begin<'a>(
        self,
        connection: &'a mut Connection,
        scope: &Scope,
        fingerprint: [u8; 32],
    ) -> Result<Begun<'a>, Problem> {
        let tx = connection.begin();
        // A key's life is a matter of the real clock.
        let now = Clock::System.now();
        let tenant = scope.tenant;
        let Some(given) = &self.key else {
            return Ok(Begun::Now(First {
                tx,
                tenant,
                key: None,
                now,
            }));
        };
        let key = Key {
            scope_hash: self.scope_hash(scope, given),
            fingerprint,
        };
        // What is done needs no lock to be told. Only who has the lock and then finds nothing may do it.
        let number = lock_number(&key.scope_hash);
        let (locked, kept) =
            table::lock_and_find(&tx, number, tenant, &key.scope_hash, now).await?;
        match kept {
            Some(kept) => replay(kept, &key),
            None if locked => Ok(Begun::Now(First {
                tx,
                tenant,
                key: Some(key),
                now,
            })),
            None => {
                let detail =
                    "a request with this Idempotency-Key is still running; ask again in a moment";
                Err(Problem::try_again(Code::IdempotencyInProgress, detail))
            }
        }
    }

    fn scope_hash(&self, scope: &Scope, key: &str) -> [u8; 32] {
        let user = scope.user.unwrap_or(Uuid::nil());
        let mut hash = Sha256::new();
        hash.update(scope.tenant);
        hash.update(scope.client);
        hash.update(user);
        // No path or key has a line break in it.
        hash.update(format!("{}\n{key}", self.method_and_path));
        hash.finalize().into()
    }
}

/// The answer that was given before, if it was to the same wish.
fn replay<'a>(kept: table::Kept, key: &Key) -> Result<Begun<'a>, Problem> {
    if kept.fingerprint != key.fingerprint {
        let detail =
            "this Idempotency-Key was used with another body; use a new key for a new request";
        return Err(Problem::new(Code::IdempotencyKeyReused, detail));
    }
    let mut response = answer::created(&kept.location, kept.body.into_bytes());
    let yes = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED, yes);
    Ok(Begun::Before(response))
}

/// Sixty-four bits of the hash, of which a collision only means a needless 409.
fn lock_number(hash: &[u8; 32]) -> i64 {
    hash.first_chunk()
        .map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

impl First<'_> {
    /// Keeps the key with the answer, commits, and answers 201.
    pub async fn created<T: Serialize>(
        self,
        location: String,
        record: &T,
    ) -> Result<Response, Problem> {
        let body = serde_json::to_string(record).map_err(|error| Problem::internal(&error))?;
        let Self {
            tx,
            tenant,
            key,
            now,
        } = self;
        let answer = answer::created(&location, body.clone().into_bytes());
        if let Some(Key {
            scope_hash,
            fingerprint,
        }) = key
        {
            let kept = table::Kept {
                fingerprint: fingerprint.to_vec(),
                location,
                body,
            };
            let expires_at = now.saturating_add(KEPT).unwrap_or(now);
            table::keep(&tx, tenant, &scope_hash, &kept, now, expires_at).await?;
        }
        tx.commit().await?;
        Ok(answer)
    }
}

/// Forgets what was answered about a user, by its path: the answers hold its e-mail address.
pub async fn forget_user(tx: &Transaction<'_>, tenant: Uuid, path: &str) -> Result<(), Error> {
    table::forget_user(tx, tenant, path).await
}

/// Removes up to `limit` keys that have expired, in this transaction; answers how many.
pub async fn remove_expired_keys(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let removed = table::remove_expired(tx, limit).await?;
    Ok(usize::try_from(removed).unwrap_or(usize::MAX))
}
