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

use std::collections::BTreeMap;

use perennial_domain::Invalid;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::problem::{Code, FieldError, Problem};

mod body;
mod read;

pub use body::NoBody;
pub use read::{Refusal, boolean, decimal, instant, integer, list, text};

/// How many mistakes are reported at most; whoever makes more needs another kind of help.
const MAX_ERRORS: usize = 100;

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
        let body::Object(given) = serde_json::from_str(text)
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
            for part in [name.as_bytes(), &compact(value.get())] {
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

    /// A field that was sent, or left out: `Some(None)`. It cannot be null.
    pub fn sent<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
    ) -> Option<Option<T>> {
        if !self.given.contains_key(name) {
            self.known.push(name);
            return Some(None);
        }
        self.required(name, read).map(Some)
    }

    /// The same for a field that can be empty: an inner `None` is null.
    pub fn sent_optional<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&RawValue) -> Result<T, Refusal>,
    ) -> Option<Option<Option<T>>> {
        if !self.given.contains_key(name) {
            self.known.push(name);
            return Some(None);
        }
        self.optional(name, read).map(Some)
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
        let room = MAX_ERRORS.saturating_sub(self.errors.len());
        for name in std::mem::take(&mut self.given).into_keys().take(room) {
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

/// A value without the white space between its parts.
fn compact(json: &str) -> Vec<u8> {
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
    fn only_white_space_between_values_is_dropped() {
        assert_eq!(compact("[ \"a \\\" b\" ,\n 1 ]"), b"[\"a \\\" b\",1]");
        let print = |body: &str| Fields::parse(body.as_bytes()).unwrap().fingerprint();
        assert_eq!(
            print(r#"{"a": [1, 2], "b": 1}"#),
            print(r#"{"b":1,"a":[1,2]}"#)
        );
        assert_ne!(print(r#"{"a": "x y"}"#), print(r#"{"a": "xy"}"#));
        assert_ne!(print(r#"{"a": 1.0}"#), print(r#"{"a": 1}"#));
    }
}
