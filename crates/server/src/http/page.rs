//! Lists, page by page.
//!
//! A page goes on where the last one ended, by the key of its last record, so that the last page
//! costs what the first does and nothing is skipped or shown twice when records come and go. The
//! place is handed to the caller as a cursor: opaque, and signed over everything that the list
//! depends on, so that it cannot be altered or carried over to another list.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use serde::Serialize;
use sha2::Sha256;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    answer,
    params::Params,
    problem::{Code, Problem},
};

/// How many records a page has unless the caller says otherwise, and at most.
const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 200;
/// How much of the signature a cursor carries.
const MAC_BYTES: usize = 16;

/// The key that signs cursors.
#[derive(Clone)]
pub struct CursorKey(pub [u8; 32]);

/// The parameter `limit`.
pub fn limit(params: &mut Params) -> i64 {
    let limit = params.value("limit").unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        params.refuse("limit", &format!("must be from 1 to {MAX_LIMIT}"));
    }
    limit
}

/// A list that cursors can belong to.
pub struct List<'a> {
    key: &'a CursorKey,
    /// Everything that the list depends on, written so that no two lists look the same.
    identity: String,
}

impl<'a> List<'a> {
    /// The list of this tenant at this endpoint, with these filters and this order.
    pub fn new(key: &'a CursorKey, parts: &[&dyn std::fmt::Debug]) -> Self {
        Self {
            key,
            identity: format!("{parts:?}"),
        }
    }

    /// A cursor for the place after a record.
    pub fn cursor(&self, place: &str) -> String {
        let mac = self.mac(place).finalize().into_bytes();
        let signed = [mac.get(..MAC_BYTES).unwrap_or_default(), place.as_bytes()].concat();
        BASE64_URL_SAFE_NO_PAD.encode(signed)
    }

    /// The place that a cursor stands for, if it is one of this list.
    pub fn place(&self, cursor: &str) -> Result<String, Problem> {
        let read = || {
            let signed = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
            let (mac, place) = signed.split_at_checked(MAC_BYTES)?;
            let place = std::str::from_utf8(place).ok()?;
            self.mac(place).verify_truncated_left(mac).ok()?;
            Some(place.to_owned())
        };
        read().ok_or_else(|| {
            let detail =
                "this cursor was altered, or belongs to a list with other filters or another order";
            Problem::new(Code::InvalidCursor, detail)
        })
    }

    /// The same, of a list in the order of age: as [`place`] wrote it.
    pub fn after(&self, cursor: &str) -> Result<(Timestamp, Uuid), Problem> {
        let place = self.place(cursor)?;
        let read = place.split_once(' ');
        let read = read.and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
        // One that is signed and cannot be read is a mistake of ours.
        read.ok_or_else(|| Problem::internal(&"a cursor of ours cannot be read"))
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    fn mac(&self, place: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key.0).expect("any length is fine");
        mac.update(
            &u64::try_from(self.identity.len())
                .unwrap_or(u64::MAX)
                .to_be_bytes(),
        );
        mac.update(self.identity.as_bytes());
        mac.update(place.as_bytes());
        mac
    }
}

/// The place of a record in a list in the order of age.
pub fn place(created_at: Timestamp, id: Uuid) -> String {
    format!("{created_at} {id}")
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T> {
    /// The records.
    pub data: Vec<T>,
    /// Whether there are more.
    #[schema(example = false)]
    pub has_more: bool,
    /// Where to go on, as the parameter `cursor`; null on the last page.
    #[schema(required, example = json!(null))]
    pub next_cursor: Option<String>,
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self) {
            Ok(bytes) => answer::untagged(StatusCode::OK, bytes),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}

impl<T> Page<T> {
    /// A page of the first `limit` of these records, of which one more than `limit` was asked for.
    pub fn of<R>(
        mut records: Vec<R>,
        limit: i64,
        list: &List<'_>,
        place: impl Fn(&R) -> String,
    ) -> Self
    where
        T: for<'r> From<&'r R>,
    {
        let limit = usize::try_from(limit).unwrap_or(0);
        let has_more = records.len() > limit;
        records.truncate(limit);
        let end = records.last().filter(|_| has_more);
        Self {
            next_cursor: end.map(|record| list.cursor(&place(record))),
            data: records.iter().map(T::from).collect(),
            has_more,
        }
    }
}
