//! The bytes: declared as JSON, not too many, not too slow, one object with different keys.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    body::{Bytes, HttpBody},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Fields;
use crate::http::{
    params,
    problem::{Code, Problem},
};

/// The largest body.
const MAX_BYTES: usize = 64 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(8);

impl<S: Sync> FromRequest<S> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        params::none(request.uri())?;
        if !is_json(request.headers()) {
            let detail = "send the header Content-Type: application/json, with no content encoding";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        Self::parse(&read_body(request).await?)
    }
}

/// For an endpoint without a body: there is none, or an object with nothing in it, which some callers cannot
/// help sending.
pub struct NoBody;

impl<S: Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        params::none(request.uri())?;
        if !request.body().is_end_stream() {
            // Boxed, because it is rare and large, and every request would carry the place for it along.
            let body = Box::pin(read_body(request)).await?;
            if !body.is_empty() {
                Fields::parse(&body)?.finish(|| Some(()))?;
            }
        }
        Ok(Self)
    }
}

/// The whole body, if it is neither too large nor too slow.
async fn read_body(request: Request) -> Result<Bytes, Problem> {
    let body = Limited::new(request.into_body(), MAX_BYTES).collect();
    match tokio::time::timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body has more than {MAX_BYTES} bytes");
            Err(Problem::new(Code::PayloadTooLarge, detail))
        }
        Ok(Err(_)) => Err(Problem::new(Code::MalformedJson, "the body ended early")),
        Err(_) => {
            let detail = format!(
                "the body did not arrive within {} seconds",
                BODY_TIMEOUT.as_secs()
            );
            Err(Problem::new(Code::RequestTimeout, detail))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let plain = headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|encoding| encoding == "identity");
    let Some(Ok(declared)) = headers
        .get(header::CONTENT_TYPE)
        .map(|value| value.to_str())
    else {
        return false;
    };
    let mut parts = declared.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let utf8 = parts.all(|parameter| {
        let lower = parameter.to_ascii_lowercase();
        !lower.starts_with("charset=")
            || ["charset=utf-8", "charset=\"utf-8\""].contains(&lower.as_str())
    });
    plain && utf8 && media_type.eq_ignore_ascii_case("application/json")
}

/// An object whose keys are all different.
pub(super) struct Object(pub(super) BTreeMap<String, Box<RawValue>>);

impl<'de> de::Deserialize<'de> for Object {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if fields.contains_key(&name) {
                        return Err(de::Error::custom("a key stands twice"));
                    }
                    fields.insert(name, value);
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}
