//! Request bodies from command-line flags, so that commands use the API's own parsing and rules.
//!
//! A flag has the name of its field, with `-` instead of `_`.

use anyhow::anyhow;
use serde_json::{Map, Value};

use crate::{
    db,
    http::{
        json::BodyFields,
        problem::{Code, Problem},
    },
};

/// The fields that flags set.
#[derive(Debug, Default)]
pub struct RequestFields(Map<String, Value>);

impl RequestFields {
    /// Sets a field if its flag is present.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Sets a nullable field if its flag is present. Empty text is null, which clears the field.
    #[must_use]
    pub fn with_nullable(self, name: &str, text: Option<String>) -> Self {
        let value = text.map(|text| match text.as_str() {
            "" => Value::Null,
            _ => text.into(),
        });
        self.with(name, value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fields as a request body.
    pub fn into_body(self) -> anyhow::Result<BodyFields> {
        let body = Value::Object(self.0).to_string();
        BodyFields::parse(body.as_bytes()).map_err(into_error)
    }
}

/// Converts a problem of the API into an error that names flags instead of fields.
#[expect(
    clippy::needless_pass_by_value,
    reason = "an argument of `Result::map_err`"
)]
pub fn into_error(problem: Problem) -> anyhow::Error {
    if problem.code() == Code::Unavailable {
        return db::Error::Unavailable(problem.detail().to_owned()).into();
    }
    if problem.errors().is_empty() {
        let existing = problem.existing_id();
        let existing = existing.map_or(String::new(), |id| format!(": {id}"));
        return anyhow!("{}{existing}", problem.detail());
    }
    let errors = problem.errors().iter();
    let lines: Vec<String> = errors
        .map(|error| format!("{}: {}", flag(&error.pointer), error.message))
        .collect();
    anyhow!(lines.join("\n"))
}

/// Returns the flag of the field at a JSON pointer, such as `--billing-cycle`.
fn flag(pointer: &str) -> String {
    let field = pointer.trim_start_matches('/');
    let field = field.split('/').next().unwrap_or(field);
    match field {
        "subscription_id" => "--subscription".to_owned(),
        "variants" => "--variant".to_owned(),
        field => format!("--{}", field.replace('_', "-")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_flags_instead_of_fields() {
        for (pointer, expected) in [
            ("/billing_cycle", "--billing-cycle"),
            ("/variants/1", "--variant"),
            ("/subscription_id", "--subscription"),
        ] {
            assert_eq!(flag(pointer), expected);
        }
    }

    #[test]
    fn empty_text_is_null_and_an_absent_flag_sets_nothing() {
        let fields = RequestFields::default()
            .with_nullable("href", Some(String::new()))
            .with_nullable("description", None)
            .with("tier", Some(2));
        assert_eq!(
            Value::Object(fields.0).to_string(),
            r#"{"href":null,"tier":2}"#
        );
    }
}
