//! OpenAPI schemas of field types, with more detail than utoipa derives from Rust types.

use serde_json::{Value, json};
use utoipa::openapi::{
    KnownFormat, SchemaFormat,
    schema::{Object, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type},
};

/// Describes a string with one of these values. The example is the third value, or the first if there are
/// fewer than three.
pub fn string_enum(description: &str, values: &[&'static str]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(values.iter().copied()))
        .description(Some(description))
        .examples(values.get(2).or(values.first()).map(|value| json!(value)))
        .build()
}

/// Describes one line of text: not blank, without control characters.
pub fn single_line(description: &str, max_length: usize, example: &str) -> Object {
    let control = r"\u0000-\u001f\u007f-\u009f";
    let pattern = format!(r"^[^{control}]*[^\s{control}][^{control}]*$");
    text(description, max_length, example)
        .min_length(Some(1))
        .pattern(Some(pattern))
        .build()
}

/// Describes text with any number of lines. Tabs and line breaks are the only control characters allowed.
pub fn multi_line(description: &str, max_length: usize, example: &str) -> Object {
    let pattern = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$";
    text(description, max_length, example)
        .pattern(Some(pattern))
        .build()
}

fn text(description: &str, max_length: usize, example: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(max_length))
        .description(Some(description))
        .examples([json!(example)])
}

/// Describes the id of a record.
pub fn record_id(description: &str, prefix: &str) -> Object {
    let example = format!("{prefix}_0192f0c1a2b37c4d8e5f60718293a4b5");
    text(description, 64, &example)
        .pattern(Some(id_pattern(prefix)))
        .build()
}

/// Returns the pattern of the ids that this service creates: a prefix and a UUIDv7.
pub fn id_pattern(prefix: &str) -> String {
    format!("^{prefix}_[0-9a-f]{{12}}7[0-9a-f]{{19}}$")
}

/// Describes an RFC 3339 timestamp. The pattern accepts a subset of the valid values: UTC, and days 1 to 28.
pub fn timestamp(description: &str) -> Object {
    let (date, time) = (
        "(19[7-9][0-9]|20[0-9]{2})-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])",
        r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?",
    );
    text(description, 64, "2026-11-15T09:30:00Z")
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some(format!("^{date}T{time}Z$")))
        .build()
}

/// Adds null to the types of a schema.
pub fn nullable(mut object: Object) -> Object {
    if let SchemaType::Type(only) = object.schema_type {
        object.schema_type = SchemaType::Array(vec![only, Type::Null]);
    }
    if let Some(values) = &mut object.enum_values {
        values.push(Value::Null);
    }
    object
}

/// Describes a nullable amount in a request.
pub fn nullable_amount(description: &str) -> Schema {
    let null = ObjectBuilder::new().schema_type(Type::Null).build();
    match amount_input(description) {
        Schema::OneOf(mut one_of) => {
            one_of.items.push(null.into());
            Schema::OneOf(one_of)
        }
        other => other,
    }
}

/// Describes a query parameter with comma-separated values that match the pattern `item`.
pub fn comma_separated(item: &str, description: &str, example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(format!("^({item})(,({item})){{0,99}}$")))
        .description(Some(description))
        .examples([json!(example)])
        .build()
}

/// Describes an amount in a request: a number, or a string with a number.
pub fn amount_input(description: &str) -> Schema {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"))
        .examples([json!("19.99")]);
    // The maximum of a currency without decimal places; others have a lower one.
    let mut number = amount_output("A number.");
    number.maximum = Some(1_000_000_000_000_i64.into());
    let schema = OneOfBuilder::new()
        .item(number)
        .item(text.description(Some("A string, for languages whose numbers are floats.")))
        .description(Some(description))
        .examples([json!(19.99)]);
    Schema::OneOf(schema.build())
}

/// Describes an amount in a response. It has no `format`, which would declare a float.
pub fn amount_output(description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Number)
        .minimum(Some(0))
        .description(Some(description))
        .examples([json!(19.99)])
        .build()
}
