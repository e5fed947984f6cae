//! JSON in: a body is one object, taken apart field by field.
//!
//! Deserialising into a struct would stop at the first mistake, read `19.99` through a float, take
//! an array for a struct, and ignore what it does not know. Here each field keeps the very
//! characters that were sent until the field's own type reads them, and everything that is wrong is
//! reported at once:
//!
//! ```ignore
//! let name = fields.required("name", text);
//! let tier = fields.or_default("tier", integer);
//! fields.finish(|| Some(NewPlan { name: name?, tier: tier?, … }))
//! ```

use std::{collections::BTreeMap, str::FromStr, time::Duration};

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use perennial_domain::{Decimal, Invalid};
use serde::de::{self, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::problem::{Code, FieldError, Problem};

/// The largest body.
const MAX_BYTES: usize = 64 * 1024;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(8);
/// How many mistakes are reported at most; whoever makes more needs another kind of help.
const MAX_ERRORS: usize = 100;

/// Why a value was refused: itself, or items inside it.
#[derive(Debug)]
pub enum Refusal {
    /// Another JSON type was expected: "a string".
    WrongType(&'static str),
    /// The right type, but not a right value.
    Invalid(Invalid),
    /// Items of a list.
    Items(Vec<(usize, Refusal)>),
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

/// Reads a string into a type.
pub fn text<T: FromStr<Err = Invalid>>(raw: &RawValue) -> Result<T, Refusal> {
    let text: String =
        serde_json::from_str(raw.get()).map_err(|_| Refusal::WrongType("a string"))?;
    Ok(text.parse()?)
}

/// Reads `true` or `false`.
pub fn boolean(raw: &RawValue) -> Result<bool, Refusal> {
    serde_json::from_str(raw.get()).map_err(|_| Refusal::WrongType("true or false"))
}

/// Reads a number, or a string that holds one, exactly.
pub fn decimal(raw: &RawValue) -> Result<Decimal, Refusal> {
    let token = raw.get();
    if token.starts_with('"') {
        text(raw)
    } else {
        let number = token.parse();
        number.map_err(|_| Refusal::WrongType("a number, or a string that holds one"))
    }
}

/// Reads an integer in any notation that JSON has for it: `1`, `1.0` and `1e0` are the same number.
pub fn integer<T: TryFrom<i64, Error = Invalid>>(raw: &RawValue) -> Result<T, Refusal> {
    let wrong = || Refusal::WrongType("an integer");
    let number: Decimal = raw.get().parse().map_err(|_| wrong())?;
    let whole = number.saturating_integer().ok_or_else(wrong)?;
    Ok(T::try_from(whole)?)
}

/// Reads a list, each item by `item`.
pub fn list<T>(
    item: impl Fn(&RawValue) -> Result<T, Refusal>,
) -> impl Fn(&RawValue) -> Result<Vec<T>, Refusal> {
    move |raw| {
        let items: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| Refusal::WrongType("a list"))?;
        let mut read = Vec::with_capacity(items.len().min(MAX_ERRORS));
        let mut refused = Vec::new();
        for (index, raw) in items.into_iter().enumerate() {
            match item(raw) {
                Ok(value) => read.push(value),
                Err(refusal) if refused.len() < MAX_ERRORS => refused.push((index, refusal)),
                Err(_) => {}
            }
        }
        if refused.is_empty() {
            Ok(read)
        } else {
            Err(Refusal::Items(refused))
        }
    }
}

/// The fields of a body, and what has been found wrong with them.
#[derive(Debug)]
pub struct Fields {
    given: BTreeMap<String, Box<RawValue>>,
    known: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl Fields {
    /// Reads one JSON object.
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        let malformed = |detail: String| Problem::new(Code::MalformedJson, detail);
        if body.is_empty() {
            return Err(malformed(
                "the body is empty; expected a JSON object".to_owned(),
            ));
        }
        let text = std::str::from_utf8(body)
            .map_err(|error| malformed(format!("the body is not UTF-8: {error}")))?;
        let Object(given) = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the body is not a JSON object: {error}")))?;
        Ok(Self {
            given,
            known: Vec::new(),
            errors: Vec::new(),
        })
    }

    /// What tells this body from another: the same fields with the same values, in whatever order.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (name, value) in &self.given {
            for part in [name.as_str(), value.get()] {
                hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                hash.update(part);
            }
        }
        hash.finalize().into()
    }

    /// A field that must be there. `None` means that it is not right, and has been noted.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
    ) -> Option<T> {
        let value = self.optional(name, read)?;
        if value.is_none() {
            self.note(
                format!("/{name}"),
                Code::Required,
                "is required".to_owned(),
                Vec::new(),
            );
        }
        value
    }

    /// A field that may be absent or null: `Some(None)`. `None` means that it is not right, and has
    /// been noted.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
    ) -> Option<Option<T>> {
        self.known.push(name);
        match self.given.remove(name) {
            None => Some(None),
            Some(raw) if raw.get() == "null" => Some(None),
            Some(raw) => match read(&raw) {
                Ok(value) => Some(Some(value)),
                Err(refusal) => {
                    self.refuse(&format!("/{name}"), refusal);
                    None
                }
            },
        }
    }

    /// A field that has a default.
    pub fn or<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
        default: T,
    ) -> Option<T> {
        self.optional(name, read)
            .map(|value| value.unwrap_or(default))
    }

    /// A field whose type has a default.
    pub fn or_default<T: Default>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
    ) -> Option<T> {
        self.or(name, read, T::default())
    }

    /// A field of a record that is being changed: absent, it stays as it is.
    pub fn amend<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
        current: T,
    ) -> Option<T> {
        if !self.given.contains_key(name) {
            self.known.push(name);
            return Some(current);
        }
        self.required(name, read)
    }

    /// The same for a field that can be empty: null empties it.
    pub fn amend_optional<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
        current: Option<T>,
    ) -> Option<Option<T>> {
        if !self.given.contains_key(name) {
            self.known.push(name);
            return Some(current);
        }
        self.optional(name, read)
    }

    /// A field that never changes: the value that it has may be sent back, another is refused.
    pub fn immutable<T: PartialEq>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
        current: &T,
    ) {
        let same = !self.given.contains_key(name)
            || self
                .required(name, read)
                .is_none_or(|sent| sent == *current);
        self.known.push(name);
        if !same {
            let message = "never changes; leave it out, or send the value that it has".to_owned();
            self.note(
                format!("/{name}"),
                Code::ImmutableField,
                message,
                Vec::new(),
            );
        }
    }

    /// Fields that our own answers carry and that a caller may send back: accepted, and ignored.
    pub fn read_only(&mut self, names: &[&'static str]) {
        for name in names {
            self.known.push(name);
            self.given.remove(*name);
        }
    }

    /// Notes what is wrong with a field.
    pub fn refuse(&mut self, pointer: &str, refusal: Refusal) {
        match refusal {
            Refusal::WrongType(expected) => {
                let message = format!("must be {expected}");
                self.note(pointer.to_owned(), Code::WrongType, message, Vec::new());
            }
            Refusal::Invalid(Invalid {
                rule,
                message,
                allowed,
            }) => {
                self.note(pointer.to_owned(), rule.into(), message, allowed);
            }
            Refusal::Items(items) => {
                for (index, refusal) in items {
                    self.refuse(&format!("{pointer}/{index}"), refusal);
                }
            }
        }
    }

    /// What was built from the fields, or everything that is wrong with them. What no one asked for
    /// is unknown.
    pub fn finish<T>(mut self, build: impl FnOnce() -> Option<T>) -> Result<T, Problem> {
        for name in std::mem::take(&mut self.given).into_keys() {
            let near = perennial_domain::closest(&name, self.known.iter().copied());
            let message = match near {
                Some(near) => format!("is not a field of this request; did you mean \"{near}\"?"),
                None => "is not a field of this request".to_owned(),
            };
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            self.note(pointer, Code::UnknownField, message, Vec::new());
        }
        if !self.errors.is_empty() {
            return Err(Problem::fields(self.errors));
        }
        build().ok_or_else(|| Problem::internal(&"a field is missing, but nothing was noted"))
    }

    fn note(&mut self, pointer: String, kind: Code, message: String, allowed: Vec<&'static str>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(FieldError {
                pointer,
                code: kind.as_str(),
                message,
                allowed,
                kind,
            });
        }
    }
}

/// An object whose keys are all different.
struct Object(BTreeMap<String, Box<RawValue>>);

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

impl<S: Sync> FromRequest<S> for Fields {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "send the header Content-Type: application/json, with no content encoding";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        Self::parse(&read_body(request).await?)
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
