//! Request bodies from command-line flags, so that commands use the API's own parsing and rules.
//!
//! A flag has the name of its field, with `-` instead of `_`.

use anyhow::anyhow;
use clap::Args;
use serde_json::{Map, Value};

use crate::{
    db,
    http::{
        json::BodyFields,
        problem::{Code, Problem},
    },
};

/// The flag `--metadata`.
#[derive(Debug, Default, Args)]
pub struct MetadataArgs {
    /// Metadata of your own: a key and its value (repeatable); `KEY=` removes the key
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pairs: Vec<(String, String)>,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

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

    /// Sets `metadata` if a flag is present. An empty value is null, which removes the key.
    #[must_use]
    pub fn with_metadata(self, MetadataArgs { pairs }: MetadataArgs) -> Self {
        let mut object = Map::new();
        for (key, value) in pairs {
            let value = Some(value).filter(|value| !value.is_empty());
            object.insert(key, value.into());
        }
        let metadata = Some(object).filter(|object| !object.is_empty());
        self.with("metadata", metadata)
    }

    /// Sets a list if its flag is present. The items are separated by commas; empty text is an empty list.
    #[must_use]
    pub fn with_list(self, name: &str, text: Option<String>) -> Self {
        let items = text.map(|text| {
            let items = text.split(',').map(str::trim);
            let items: Vec<&str> = items.filter(|item| !item.is_empty()).collect();
            Value::from(items)
        });
        self.with(name, items)
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
        "subscription_plan_slug" => "--plan".to_owned(),
        "variants" => "--variant".to_owned(),
        "audiences" => "--audience".to_owned(),
        "client_secret" => "--client-secret-file".to_owned(),
        // Secrets are read from files.
        "api_key" => "--api-key-file".to_owned(),
        "secret" => "--secret-file".to_owned(),
        field => format!("--{}", field.replace('_', "-")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_flags_instead_of_fields() {
        for (pointer, expected) in [
            ("/billing_cycle", "--billing-cycle"),
            ("/variants/1", "--variant"),
            ("/subscription_id", "--subscription"),
            ("/metadata/order", "--metadata"),
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

    #[test]
    fn list_is_split_at_commas_and_empty_text_is_an_empty_list() {
        let fields = RequestFields::default()
            .with_list("event_types", Some("plan.*, user.erased".to_owned()))
            .with_list("variants", Some(String::new()))
            .with_list("scopes", None);
        assert_eq!(
            Value::Object(fields.0).to_string(),
            r#"{"event_types":["plan.*","user.erased"],"variants":[]}"#
        );
    }

    #[test]
    fn metadata_pairs_become_an_object_in_which_an_empty_value_is_null() {
        let pairs = ["order=7=8", "note="].map(|text| parse_pair(text).unwrap());
        let args = MetadataArgs {
            pairs: pairs.into(),
        };
        let fields = RequestFields::default().with_metadata(args);
        assert_eq!(
            Value::Object(fields.0),
            json!({"metadata": {"note": null, "order": "7=8"}})
        );
        let none = MetadataArgs { pairs: Vec::new() };
        assert!(RequestFields::default().with_metadata(none).is_empty());
        assert!(parse_pair("order").is_err());
    }
}
