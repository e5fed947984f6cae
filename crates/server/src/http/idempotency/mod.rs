//! Idempotency keys: a request that creates a record can be retried safely.
//!
//! A client that receives no response retries with the same `Idempotency-Key`. The key and the response
//! are stored in the transaction that creates the record. A retry gets the stored response, or creates
//! the record if the first request was rolled back. While the first request is running, a retry gets
//! 409.
//!
//! Only this module creates `201 Created` responses, so no endpoint can omit the key:
//!
//! ```ignore
//! let tx = match key.begin(&mut connection, &caller.idempotency_scope(), fingerprint).await? {
//!     IdempotencyOutcome::Replayed(response) => return Ok(response),
//!     IdempotencyOutcome::Proceed(tx) => tx,
//! };
//! let created = async {
//!     …                                    // insert the record in `tx`
//!     Ok((location, record))
//! };
//! let created = created.await;
//! tx.respond(created).await                // store the key, commit, respond; or roll back
//! ```

use std::ops::Deref;

use axum::{
    extract::FromRequestParts,
    http::{HeaderName, HeaderValue, request::Parts},
    response::Response,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    problem::{Code, Problem},
    response,
};
use crate::{
    clock::Clock,
    db::{Error, PooledConnection, Transaction},
};

mod table;

const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");
const KEY_TTL: SignedDuration = SignedDuration::from_hours(24);

/// The namespace of a key: clients, staff members and users do not share keys.
#[derive(Debug, Clone, Copy)]
pub struct IdempotencyScope {
    pub tenant: Uuid,
    /// The id of the client or staff member.
    pub principal: Uuid,
    /// The signed-in user, if any.
    pub user: Option<Uuid>,
}

/// The header `Idempotency-Key` and the request that it was sent with.
#[derive(Debug)]
pub struct IdempotencyKey {
    key: Option<String>,
    method_and_path: String,
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let values: Vec<&HeaderValue> = parts.headers.get_all(KEY_HEADER).iter().collect();
        let key = match values.as_slice() {
            [] => None,
            [only] => Some(only.to_str().unwrap_or_default()),
            // Rejected below, as an empty key is.
            _ => Some(""),
        };
        let is_valid = |key: &str| {
            (1..=255).contains(&key.len()) && key.bytes().all(|b| (b' '..=b'~').contains(&b))
        };
        if key.is_some_and(|key| !is_valid(key)) {
            let detail =
                "Idempotency-Key must be sent once and have 1 to 255 printable ASCII characters";
            return Err(Problem::new(Code::InvalidIdempotencyKey, detail));
        }
        Ok(Self {
            key: key.map(str::to_owned),
            method_and_path: format!("{} {}", parts.method, parts.uri.path()),
        })
    }
}

/// Whether the request was completed before.
pub enum IdempotencyOutcome<'a> {
    /// The request was completed before. Contains the stored response.
    Replayed(Response),
    /// The request was not completed before. Contains the transaction that creates the record.
    Proceed(IdempotentTx<'a>),
}

struct HashedKey {
    /// Of the scope, method, path and key.
    scope_hash: [u8; 32],
    /// Of the body.
    fingerprint: [u8; 32],
}

/// The transaction of a request that creates a record.
pub struct IdempotentTx<'a> {
    tx: Transaction<'a>,
    tenant: Uuid,
    key: Option<HashedKey>,
    now: Timestamp,
}

impl<'a> Deref for IdempotentTx<'a> {
    type Target = Transaction<'a>;

    fn deref(&self) -> &Transaction<'a> {
        &self.tx
    }
}

impl IdempotencyKey {
    /// Starts the transaction that creates the record, unless the request was completed before.
    pub async fn begin<'a>(
        self,
        connection: &'a mut PooledConnection,
        scope: &IdempotencyScope,
        fingerprint: [u8; 32],
    ) -> Result<IdempotencyOutcome<'a>, Problem> {
        let tx = connection.begin();
        // Keys expire by real time, also in a sandbox with a simulated clock.
        let now = Clock::System.now();
        let tenant = scope.tenant;
        let Some(sent) = &self.key else {
            return Ok(IdempotencyOutcome::Proceed(IdempotentTx {
                tx,
                tenant,
                key: None,
                now,
            }));
        };
        let key = HashedKey {
            scope_hash: self.scope_hash(scope, sent),
            fingerprint,
        };
        // A stored response can be returned without the lock. Creating the record requires the lock, and
        // that no response was found after it was acquired.
        let lock_id = lock_id(&key.scope_hash);
        let (locked, stored) =
            table::lock_and_find(&tx, lock_id, tenant, &key.scope_hash, now).await?;
        match stored {
            Some(stored) => replay(stored, &key),
            None if locked => Ok(IdempotencyOutcome::Proceed(IdempotentTx {
                tx,
                tenant,
                key: Some(key),
                now,
            })),
            None => {
                let detail = "a request with this Idempotency-Key is still running; retry later";
                Err(Problem::retryable(Code::IdempotencyInProgress, detail))
            }
        }
    }

    /// Returns a key for a request that this one causes at another API. A retry with the same key and body has the same.
    /// `None` if the client sent no key.
    pub fn derive(&self, scope: &IdempotencyScope, fingerprint: [u8; 32]) -> Option<String> {
        let sent = self.key.as_deref()?;
        let mut hash = Sha256::new();
        hash.update(self.scope_hash(scope, sent));
        hash.update(fingerprint);
        Some(BASE64_URL_SAFE_NO_PAD.encode(hash.finalize()))
    }

    fn scope_hash(&self, scope: &IdempotencyScope, key: &str) -> [u8; 32] {
        let user = scope.user.unwrap_or(Uuid::nil());
        let mut hash = Sha256::new();
        hash.update(scope.tenant);
        hash.update(scope.principal);
        hash.update(user);
        // Unambiguous: neither part can contain a line break.
        hash.update(format!("{}\n{key}", self.method_and_path));
        hash.finalize().into()
    }
}

/// Returns the stored response, if the body is the same.
fn replay<'a>(
    stored: table::StoredResponse,
    key: &HashedKey,
) -> Result<IdempotencyOutcome<'a>, Problem> {
    if stored.fingerprint != key.fingerprint {
        let detail =
            "this Idempotency-Key was used with a different body; use a new key for a new request";
        return Err(Problem::new(Code::IdempotencyKeyReused, detail));
    }
    let mut response = response::created(&stored.location, stored.body.into_bytes());
    let replayed = HeaderValue::from_static("true");
    response.headers_mut().insert(REPLAYED_HEADER, replayed);
    Ok(IdempotencyOutcome::Replayed(response))
}

/// Returns 64 bits of the hash. A collision causes an unnecessary 409, nothing else.
fn lock_id(hash: &[u8; 32]) -> i64 {
    hash.first_chunk()
        .map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

impl IdempotentTx<'_> {
    /// Stores the key with the response, commits, and returns 201. If the record was not created, rolls
    /// back first: the client may send another request with the key as soon as it has the response.
    pub async fn respond<T: Serialize>(
        self,
        created: Result<(String, T), Problem>,
    ) -> Result<Response, Problem> {
        let (location, record) = match created {
            Ok(created) => created,
            Err(problem) => {
                self.tx.rollback().await;
                return Err(problem);
            }
        };
        let body = serde_json::to_string(&record).map_err(|error| Problem::internal(&error))?;
        let Self {
            tx,
            tenant,
            key,
            now,
        } = self;
        let response = response::created(&location, body.clone().into_bytes());
        if let Some(HashedKey {
            scope_hash,
            fingerprint,
        }) = key
        {
            let stored = table::StoredResponse {
                fingerprint: fingerprint.to_vec(),
                location,
                body,
            };
            let expires_at = now.saturating_add(KEY_TTL).unwrap_or(now);
            table::store(&tx, tenant, &scope_hash, &stored, now, expires_at).await?;
        }
        tx.commit().await?;
        Ok(response)
    }
}

/// Deletes up to `limit` expired keys and returns their number.
pub async fn remove_expired_keys(tx: &Transaction<'_>, limit: i64) -> Result<usize, Error> {
    let deleted = table::delete_expired(tx, limit).await?;
    Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
}
