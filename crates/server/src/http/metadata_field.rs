//! The field `metadata` of request and response bodies: its parsing, its schemas and its JSON.

use perennial_domain::{Metadata, MetadataChange};
use serde::{Serialize, Serializer};
use serde_json::{json, value::RawValue};
use utoipa::openapi::{
    Ref, RefOr,
    schema::{AdditionalProperties, Object, ObjectBuilder, Schema, Type},
};

use super::{
    json::{BodyFields, ObjectWithUniqueKeys, ValueError},
    request_schema::RequestField,
    schema::{
        named, nullable,
        pattern::{self, anchored},
    },
};

const NAME: &str = "metadata";

/// The request field, for lists of fields that schemas are created from.
pub const FIELD: RequestField = RequestField::nullable(NAME, request_schema);

/// Takes the field of a body that creates a record.
pub fn from_create(fields: &mut BodyFields) -> Option<Metadata> {
    from_update(fields, &Metadata::default())
}

/// Takes the field of a body that updates a record. Keys that are absent stay, null removes a key, and
/// null instead of the object removes all.
pub fn from_update(fields: &mut BodyFields, current: &Metadata) -> Option<Metadata> {
    let merged = fields.if_present_nullable(NAME, |raw| Ok(current.merge(parse(raw)?)?))?;
    Some(match merged {
        None => current.clone(),
        Some(None) => Metadata::default(),
        Some(Some(merged)) => merged,
    })
}

fn parse(raw: &RawValue) -> Result<Vec<MetadataChange>, ValueError> {
    let ObjectWithUniqueKeys(pairs) = serde_json::from_str(raw.get())
        .map_err(|_| ValueError::WrongType("an object without duplicate keys"))?;
    let mut changes = Vec::new();
    let mut errors = Vec::new();
    for (key, raw) in pairs {
        let value: Result<Option<String>, _> = serde_json::from_str(raw.get());
        let change = match value {
            Ok(value) => MetadataChange::new(&key, value.as_deref()).map_err(ValueError::from),
            Err(_) => Err(ValueError::WrongType("a string or null")),
        };
        match change {
            Ok(change) => changes.push(change),
            Err(error) => errors.push((key, error)),
        }
    }
    if errors.is_empty() {
        Ok(changes)
    } else {
        Err(ValueError::Items(errors))
    }
}

/// Serializes metadata as an object.
pub fn serialize<S: Serializer>(metadata: &Metadata, serializer: S) -> Result<S::Ok, S::Error> {
    metadata.pairs().serialize(serializer)
}

/// Describes the field of a response.
pub fn response_schema() -> Ref {
    named::METADATA.reference("Pairs of strings that clients attached.")
}

fn request_schema() -> RefOr<Schema> {
    named::METADATA_CHANGES
        .reference("Pairs of strings to attach.")
        .into()
}

/// Describes metadata in responses.
pub(super) fn metadata_schema() -> RefOr<Schema> {
    let value = ObjectBuilder::new().schema_type(Type::String).build();
    object(value, "Pairs of strings.").into()
}

/// Describes metadata in requests. It cannot say that at most 50 pairs may result, because null removes one.
pub(super) fn changes_schema() -> RefOr<Schema> {
    let value = ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(Metadata::MAX_VALUE_LENGTH))
        .pattern(Some(anchored(&pattern::multi_line())))
        .build();
    let key = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(Metadata::MAX_KEY_LENGTH))
        .pattern(Some(anchored(&pattern::single_line())))
        .build();
    let description = "Pairs of strings, at most 50. A key has 1 to 40 characters and a value up to 500. A value cannot be \
                       a card number. An update keeps the pairs that the request does not have, and null removes one. \
                       Events keep metadata, so do not put personal data into it.";
    object(nullable(value), description)
        .property_names(Some(key))
        .into()
}

fn object(value: Object, description: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::RefOr(value.into())))
        .description(Some(description))
        .examples([json!({"order": "A-1042"})])
}
