//! Extractors for JSON bodies: media type, size and time limits, and one object without duplicate keys.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    body::{Bytes, HttpBody},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::BodyFields;
use crate::http::{
    problem::{Code, Problem},
    query,
};

const MAX_BODY_BYTES: usize = 64 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(8);

impl<S: Sync> FromRequest<S> for BodyFields {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        query::reject_all(request.uri())?;
        read_fields(request).await
    }
}

/// Extractor for an endpoint with a body and query parameters.
pub struct BodyFieldsWithQuery(pub BodyFields);

impl<S: Sync> FromRequest<S> for BodyFieldsWithQuery {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        read_fields(request).await.map(Self)
    }
}

async fn read_fields(request: Request) -> Result<BodyFields, Problem> {
    if !is_json(request.headers()) {
        let detail = "send the header Content-Type: application/json and no content encoding";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    BodyFields::parse(&read_body(request).await?)
}

/// Extractor for an endpoint without a body. An empty JSON object is accepted too, because some HTTP
/// clients always send one.
pub struct NoBody;

impl<S: Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        query::reject_all(request.uri())?;
        if !request.body().is_end_stream() {
            // Hot path: boxed to keep the future small, because a request seldom has a body here (measured,
            // with the other boxed futures: session check -7,000 instructions).
            let body = Box::pin(read_body(request)).await?;
            if !body.is_empty() {
                BodyFields::parse(&body)?.finish(|| Some(()))?;
            }
        }
        Ok(Self)
    }
}

async fn read_body(request: Request) -> Result<Bytes, Problem> {
    read_raw_body(request, MAX_BODY_BYTES).await
}

/// Reads the body of a request within the time limit. It must have at most `max_bytes`.
pub async fn read_raw_body(request: Request, max_bytes: usize) -> Result<Bytes, Problem> {
    let body = Limited::new(request.into_body(), max_bytes).collect();
    match tokio::time::timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body must have at most {max_bytes} bytes");
            Err(Problem::new(Code::PayloadTooLarge, detail))
        }
        Ok(Err(_)) => Err(Problem::new(Code::MalformedJson, "the body is incomplete")),
        Err(_) => {
            let detail = format!(
                "the body must arrive within {} seconds",
                BODY_TIMEOUT.as_secs()
            );
            Err(Problem::new(Code::RequestTimeout, detail))
        }
    }
}

/// Returns whether the headers declare a JSON body in UTF-8 without a content encoding.
fn is_json(headers: &HeaderMap) -> bool {
    let unencoded = headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|encoding| encoding == "identity");
    let Some(Ok(content_type)) = headers
        .get(header::CONTENT_TYPE)
        .map(|value| value.to_str())
    else {
        return false;
    };
    let mut parts = content_type.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let utf8 = parts.all(|parameter| {
        let lower = parameter.to_ascii_lowercase();
        !lower.starts_with("charset=")
            || ["charset=utf-8", "charset=\"utf-8\""].contains(&lower.as_str())
    });
    unencoded && utf8 && media_type.eq_ignore_ascii_case("application/json")
}

/// A JSON object without duplicate keys.
pub struct ObjectWithUniqueKeys(pub BTreeMap<String, Box<RawValue>>);

impl<'de> de::Deserialize<'de> for ObjectWithUniqueKeys {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = ObjectWithUniqueKeys;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<ObjectWithUniqueKeys, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if fields.contains_key(&name) {
                        return Err(de::Error::custom("duplicate key"));
                    }
                    fields.insert(name, value);
                }
                Ok(ObjectWithUniqueKeys(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}
