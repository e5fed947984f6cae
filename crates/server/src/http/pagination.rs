//! Keyset pagination with opaque, signed cursors.
//!
//! A page continues after the sort key of the previous page's last record. The last page is as fast
//! as the first, and no record is skipped or repeated when others are created or deleted. The cursor
//! is signed together with the tenant, endpoint, filters and order of its list, so it cannot be
//! altered or used for another list.
//!
//! ```ignore
//! let request = PageRequest::parse(&mut params, &ORDERS);
//! params.finish()?;
//! let page = request.verify(&app.cursor_key, &[&"GET /records", &tenant, &filter])?;
//! let rows = table::list(…, page.order, page.after, page.row_limit()).await?;
//! Ok(page.finish(rows, |record| AgeKey { created_at: record.created_at, id: record.id.uuid() }))
//! ```

use std::fmt::Debug;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;
use utoipa::ToSchema;

use super::{
    csv_list::ListFormat,
    problem::{Code, Problem},
    query::QueryParams,
    response,
};
use crate::{
    crypto::DerivedKeys,
    db::{AgeKey, AgeOrder},
};

/// Values of `sort` in lists by creation time; the first is the default.
pub const BY_AGE: [(&str, AgeOrder); 2] = [
    ("created_at", AgeOrder::OldestFirst),
    ("-created_at", AgeOrder::NewestFirst),
];

const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 200;
/// The rows of a list as CSV, if the request does not limit them.
const MAX_CSV_ROWS: i64 = 10_000;
/// The MAC is truncated to this length.
const MAC_BYTES: usize = 16;

/// The keys that sign cursors. A cursor of any of the master keys is accepted.
#[derive(Clone)]
pub struct CursorKey(pub DerivedKeys);

/// The sort key of a record, which a cursor contains.
pub trait SortKey: Sized {
    fn encode(&self) -> String;
    fn decode(text: &str) -> Option<Self>;
}

impl SortKey for AgeKey {
    fn encode(&self) -> String {
        format!("{} {}", self.created_at, self.id)
    }

    fn decode(text: &str) -> Option<Self> {
        let (created_at, id) = text.split_once(' ')?;
        Some(Self {
            created_at: created_at.parse().ok()?,
            id: id.parse().ok()?,
        })
    }
}

/// The parameters `limit`, `cursor` and `sort` of a list.
pub struct PageRequest<O> {
    limit: i64,
    cursor: Option<String>,
    order: O,
}

impl<O: Copy + Debug> PageRequest<O> {
    /// Takes the parameters from the query. The first of `orders` is the default.
    pub fn parse<const N: usize>(
        params: &mut QueryParams,
        orders: &[(&'static str, O); N],
    ) -> Self {
        Self {
            limit: limit_param(params),
            cursor: params.text("cursor"),
            order: params.order(orders),
        }
    }

    /// Takes the parameters of a list that is also CSV, which has more rows unless the request limits them.
    pub fn parse_as<const N: usize>(
        params: &mut QueryParams,
        orders: &[(&'static str, O); N],
        format: &ListFormat,
    ) -> Self {
        let has_limit = params.contains("limit");
        let mut request = Self::parse(params, orders);
        if format.is_csv() && !has_limit {
            request.limit = MAX_CSV_ROWS;
        }
        request
    }

    /// Takes the parameters of a list with only one order, which has no parameter `sort`.
    pub fn parse_unsorted(params: &mut QueryParams, order: O) -> Self {
        Self {
            limit: limit_param(params),
            cursor: params.text("cursor"),
            order,
        }
    }

    /// Verifies that the cursor belongs to the list that `identity` and the order describe.
    pub fn verify<'k, K: SortKey>(
        self,
        key: &'k CursorKey,
        identity: &[&dyn Debug],
    ) -> Result<PageQuery<'k, O, K>, Problem> {
        let signer = CursorSigner::new(key, &[identity, &[&self.order]].concat());
        let after = match self.cursor {
            Some(cursor) => Some(signer.decode(&cursor)?),
            None => None,
        };
        Ok(PageQuery {
            order: self.order,
            after,
            limit: self.limit,
            signer,
        })
    }
}

/// The verified parameters of a page.
pub struct PageQuery<'k, O, K> {
    pub order: O,
    /// The sort key of the previous page's last record.
    pub after: Option<K>,
    limit: i64,
    signer: CursorSigner<'k>,
}

impl<O, K: SortKey> PageQuery<'_, O, K> {
    /// Returns the number of rows to read: one more than the page's limit, to detect a next page.
    pub fn row_limit(&self) -> i64 {
        self.limit + 1
    }

    /// Creates the page from up to [`Self::row_limit`] records.
    pub fn finish<R, T>(&self, mut records: Vec<R>, sort_key: impl Fn(&R) -> K) -> Page<T>
    where
        T: for<'r> From<&'r R>,
    {
        let has_more = records.len() > self.limit();
        records.truncate(self.limit());
        let last = records.last().filter(|_| has_more);
        self.finish_at(records.iter().map(T::from).collect(), last.map(sort_key))
    }

    /// Returns the most records of the page.
    pub fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(0)
    }

    /// Creates a page that ends at a position of its own, which need not be that of its last record.
    pub fn finish_at<T>(&self, data: Vec<T>, next: Option<K>) -> Page<T> {
        Page {
            has_more: next.is_some(),
            next_cursor: next.map(|next| self.signer.encode(&next)),
            data,
        }
    }
}

/// Signs and verifies the cursors of one list.
pub struct CursorSigner<'k> {
    key: &'k CursorKey,
    /// The debug format of everything that identifies the list: unambiguous, because strings are quoted.
    identity: String,
}

impl<'k> CursorSigner<'k> {
    /// Creates the signer of the list that `identity` describes.
    pub fn new(key: &'k CursorKey, identity: &[&dyn Debug]) -> Self {
        Self {
            key,
            identity: format!("{identity:?}"),
        }
    }

    pub fn encode(&self, sort_key: &impl SortKey) -> String {
        let text = sort_key.encode();
        let mac = self
            .mac(&self.key.0.in_use().cursors, &text)
            .finalize()
            .into_bytes();
        let signed = [mac.get(..MAC_BYTES).unwrap_or_default(), text.as_bytes()].concat();
        BASE64_URL_SAFE_NO_PAD.encode(signed)
    }

    pub fn decode<K: SortKey>(&self, cursor: &str) -> Result<K, Problem> {
        let verify = || {
            let signed = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
            let (mac, text) = signed.split_at_checked(MAC_BYTES)?;
            let text = std::str::from_utf8(text).ok()?;
            let mut keys = self.key.0.all();
            let is_signed = keys.any(|keys| {
                let expected = self.mac(&keys.cursors, text);
                expected.verify_truncated_left(mac).is_ok()
            });
            is_signed.then(|| text.to_owned())
        };
        let text = verify().ok_or_else(|| {
            let detail =
                "the cursor was altered, or belongs to a list with other filters or another order";
            Problem::new(Code::InvalidCursor, detail)
        })?;
        K::decode(&text).ok_or_else(|| Problem::internal(&"a signed cursor cannot be decoded"))
    }

    #[expect(clippy::expect_used, reason = "HMAC accepts keys of any length")]
    fn mac(&self, key: &[u8; 32], text: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC accepts any key length");
        mac.update(
            &u64::try_from(self.identity.len())
                .unwrap_or(u64::MAX)
                .to_be_bytes(),
        );
        mac.update(self.identity.as_bytes());
        mac.update(text.as_bytes());
        mac
    }
}

/// Takes the parameter `limit`: the maximum number of records on a page.
pub fn limit_param(params: &mut QueryParams) -> i64 {
    let limit = params.value("limit").unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        params.push_error("limit", &format!("must be from 1 to {MAX_LIMIT}"));
    }
    limit
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// Whether there are more pages.
    #[schema(example = false)]
    pub has_more: bool,
    /// The value of the parameter `cursor` for the next page; null on the last page.
    #[schema(required, example = json!(null))]
    pub next_cursor: Option<String>,
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self) {
            Ok(bytes) => response::json_with_etag(StatusCode::OK, bytes),
            Err(error) => Problem::internal(&error).into_response(),
        }
    }
}
