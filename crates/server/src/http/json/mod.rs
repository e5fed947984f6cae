//! JSON request bodies: each endpoint takes its fields by name, then [`BodyFields::finish`] reports all
//! errors together.
//!
//! Deserializing into a struct would stop at the first error, convert `19.99` to a float, accept an
//! array instead of an object, and ignore unknown fields. Here every field keeps its JSON text until
//! its own type parses it.
//!
//! ```ignore
//! let name = fields.required("name", text);
//! let tier = fields.or_default("tier", integer);
//! fields.finish(|| Some(NewPlan { name: name?, tier: tier?, … }))
//! ```

use std::collections::BTreeMap;

use perennial_domain::ValidationError;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::problem::{Code, Problem, ProblemFieldError};

mod extract;
mod value;

pub(super) use extract::ObjectWithUniqueKeys;
pub use extract::{BodyFieldsWithQuery, NoBody, read_raw_body};
pub use value::{ValueError, boolean, decimal, exact, integer, list, text, timestamp};

/// The maximum number of errors in a response.
const MAX_ERRORS: usize = 100;

/// The fields of a body that have not been taken yet, and the errors so far.
///
/// The methods that take a field return `None` if its value is invalid, after recording the error.
#[derive(Debug, Clone)]
pub struct BodyFields {
    remaining: BTreeMap<String, Box<RawValue>>,
    /// The names of the fields that the endpoint knows, for suggestions.
    known: Vec<&'static str>,
    errors: Vec<ProblemFieldError>,
}

impl BodyFields {
    /// Parses one JSON object.
    pub fn parse(body: &[u8]) -> Result<Self, Problem> {
        let malformed = |detail: String| Problem::new(Code::MalformedJson, detail);
        if body.is_empty() {
            return Err(malformed(
                "the body is empty; expected a JSON object".to_owned(),
            ));
        }
        let text = std::str::from_utf8(body)
            .map_err(|error| malformed(format!("the body is not UTF-8: {error}")))?;
        let extract::ObjectWithUniqueKeys(remaining) = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the body is not a JSON object: {error}")))?;
        Ok(Self {
            remaining,
            known: Vec::new(),
            errors: Vec::new(),
        })
    }

    /// Returns a hash of the fields that does not depend on their order or on whitespace. Must be called
    /// before any field is taken.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (name, value) in &self.remaining {
            for part in [name.as_bytes(), &without_whitespace(value.get())] {
                hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                hash.update(part);
            }
        }
        hash.finalize().into()
    }

    /// Takes a field that must be present and not null.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
    ) -> Option<T> {
        let value = self.optional(name, parse)?;
        if value.is_none() {
            self.push_error(format!("/{name}"), Code::Required, "is required");
        }
        value
    }

    /// Reports that a field is missing, which is required unless another one is sent.
    pub fn push_missing(&mut self, name: &str, alternative: &str) {
        let message = format!("is required, unless {alternative} is sent");
        self.push_error(format!("/{name}"), Code::Required, &message);
    }

    /// Takes a field that can be absent or null (`Some(None)`).
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
    ) -> Option<Option<T>> {
        self.known.push(name);
        match self.remaining.remove(name) {
            None => Some(None),
            Some(raw) if raw.get() == "null" => Some(None),
            Some(raw) => match parse(&raw) {
                Ok(value) => Some(Some(value)),
                Err(error) => {
                    self.push_value_error(&format!("/{name}"), error);
                    None
                }
            },
        }
    }

    /// Takes a field that defaults to `default` if it is absent or null.
    pub fn with_default<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
        default: T,
    ) -> Option<T> {
        self.optional(name, parse)
            .map(|value| value.unwrap_or(default))
    }

    /// Takes a field that defaults to its type's default if it is absent or null.
    pub fn or_default<T: Default>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
    ) -> Option<T> {
        self.with_default(name, parse, T::default())
    }

    /// Takes a field of an update that keeps its current value if it is absent. It cannot be null.
    pub fn or_current<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
        current: T,
    ) -> Option<T> {
        self.if_present(name, parse)
            .map(|value| value.unwrap_or(current))
    }

    /// Takes a nullable field of an update that keeps its current value if it is absent.
    pub fn or_current_nullable<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
        current: Option<T>,
    ) -> Option<Option<T>> {
        self.if_present_nullable(name, parse)
            .map(|value| value.unwrap_or(current))
    }

    /// Takes a field that can be absent (`Some(None)`) but not null.
    pub fn if_present<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
    ) -> Option<Option<T>> {
        if !self.remaining.contains_key(name) {
            self.known.push(name);
            return Some(None);
        }
        self.required(name, parse).map(Some)
    }

    /// Takes a field that can be absent (`Some(None)`) or null (`Some(Some(None))`).
    pub fn if_present_nullable<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
    ) -> Option<Option<Option<T>>> {
        if !self.remaining.contains_key(name) {
            self.known.push(name);
            return Some(None);
        }
        self.optional(name, parse).map(Some)
    }

    /// Takes a field that cannot be changed: it can be absent or have its current value.
    pub fn immutable<T: PartialEq>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
        current: &T,
    ) {
        let value = self.if_present(name, parse).flatten();
        if value.is_some_and(|value| value != *current) {
            self.push_immutable(name);
        }
    }

    /// Like [`Self::immutable`], for a field that responses may show as null.
    pub fn immutable_nullable<T: PartialEq>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&RawValue) -> Result<T, ValueError>,
        current: &T,
    ) {
        let value = self.if_present_nullable(name, parse).flatten().flatten();
        if value.is_some_and(|value| value != *current) {
            self.push_immutable(name);
        }
    }

    fn push_immutable(&mut self, name: &'static str) {
        let message = "cannot be changed; omit it, or send its current value";
        self.push_error(format!("/{name}"), Code::ImmutableField, message);
    }

    /// Accepts and ignores fields of the response that clients may send back.
    pub fn read_only(&mut self, names: &[&'static str]) {
        for name in names {
            self.known.push(name);
            self.remaining.remove(*name);
        }
    }

    /// Records why the value at the JSON Pointer `pointer` is invalid.
    fn push_value_error(&mut self, pointer: &str, error: ValueError) {
        match error {
            ValueError::WrongType(expected) => {
                let message = format!("must be {expected}");
                self.push_error(pointer.to_owned(), Code::WrongType, &message);
            }
            ValueError::Invalid(ValidationError {
                rule,
                message,
                allowed,
            }) => {
                let error = ProblemFieldError::new(pointer.to_owned(), rule.into(), message);
                self.push(error.with_allowed(allowed));
            }
            ValueError::Items(items) => {
                for (key, error) in items {
                    self.push_value_error(&format!("{pointer}/{}", escape_pointer(&key)), error);
                }
            }
        }
    }

    /// Returns the result of `build`, or all errors, including fields that were not taken.
    pub fn finish<T>(mut self, build: impl FnOnce() -> Option<T>) -> Result<T, Problem> {
        let limit = MAX_ERRORS.saturating_sub(self.errors.len());
        for name in std::mem::take(&mut self.remaining).into_keys().take(limit) {
            let closest = perennial_domain::suggest(&name, self.known.iter().copied());
            let message = match closest {
                Some(closest) => {
                    format!("is not a field of this request; did you mean \"{closest}\"?")
                }
                None => "is not a field of this request".to_owned(),
            };
            let pointer = format!("/{}", escape_pointer(&name));
            self.push_error(pointer, Code::UnknownField, &message);
        }
        if !self.errors.is_empty() {
            return Err(Problem::fields(self.errors));
        }
        build().ok_or_else(|| Problem::internal(&"a field is missing, but no error was recorded"))
    }

    fn push_error(&mut self, pointer: String, code: Code, message: &str) {
        self.push(ProblemFieldError::new(pointer, code, message));
    }

    fn push(&mut self, error: ProblemFieldError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }
}

/// Escapes a key as a part of a JSON pointer.
fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Removes the whitespace between tokens.
fn without_whitespace(json: &str) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    json.bytes()
        .filter(|byte| {
            let keep = in_string || !byte.is_ascii_whitespace();
            if *byte == b'"' && !escaped {
                in_string = !in_string;
            }
            escaped = in_string && *byte == b'\\' && !escaped;
            keep
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_ignores_field_order_and_whitespace_between_tokens() {
        assert_eq!(
            without_whitespace("[ \"a \\\" b\" ,\n 1 ]"),
            b"[\"a \\\" b\",1]"
        );
        let fingerprint = |body: &str| BodyFields::parse(body.as_bytes()).unwrap().fingerprint();
        assert_eq!(
            fingerprint(r#"{"a": [1, 2], "b": 1}"#),
            fingerprint(r#"{"b":1,"a":[1,2]}"#)
        );
        assert_ne!(
            fingerprint(r#"{"a": "x y"}"#),
            fingerprint(r#"{"a": "xy"}"#)
        );
        assert_ne!(fingerprint(r#"{"a": 1.0}"#), fingerprint(r#"{"a": 1}"#));
    }
}
