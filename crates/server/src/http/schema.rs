//! Pieces of the OpenAPI document that a Rust type alone cannot say.

use serde_json::{Value, json};
use utoipa::openapi::{
    KnownFormat, SchemaFormat,
    schema::{Object, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type},
};

/// One of a set of words.
pub fn words(description: &str, words: &[&'static str]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()))
        .description(Some(description))
        .examples(words.get(2).or(words.first()).map(|word| json!(word)))
        .build()
}

/// One line of text: no control character, and not blank.
pub fn line(description: &str, longest: usize, example: &str) -> Object {
    let control = r"\u0000-\u001f\u007f-\u009f";
    let pattern = format!(r"^[^{control}]*[^\s{control}][^{control}]*$");
    text(description, longest, example)
        .min_length(Some(1))
        .pattern(Some(pattern))
        .build()
}

/// Text that may have several lines, or none: of the control characters only tabs and ends of lines.
pub fn prose(description: &str, longest: usize, example: &str) -> Object {
    let pattern = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$";
    text(description, longest, example)
        .pattern(Some(pattern))
        .build()
}

fn text(description: &str, longest: usize, example: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(longest))
        .description(Some(description))
        .examples([json!(example)])
}

/// The id of another record, with its prefix.
pub fn reference(description: &str, prefix: &str) -> Object {
    let example = format!("{prefix}_0192f0c1a2b37c4d8e5f60718293a4b5");
    text(description, 64, &example)
        .pattern(Some(id_pattern(prefix)))
        .build()
}

/// The ids that we make: UUIDv7.
pub fn id_pattern(prefix: &str) -> String {
    format!("^{prefix}_[0-9a-f]{{12}}7[0-9a-f]{{19}}$")
}

/// An instant as it may be sent: RFC 3339, with an offset. A little narrower than what is taken.
pub fn instant(description: &str) -> Object {
    let (date, time) = (
        "(19[7-9][0-9]|20[0-9]{2})-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])",
        r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?",
    );
    text(description, 64, "2026-11-15T09:30:00Z")
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .pattern(Some(format!("^{date}T{time}Z$")))
        .build()
}

/// The same, or null.
pub fn or_null(mut object: Object) -> Object {
    if let SchemaType::Type(only) = object.schema_type {
        object.schema_type = SchemaType::Array(vec![only, Type::Null]);
    }
    if let Some(values) = &mut object.enum_values {
        values.push(Value::Null);
    }
    object
}

/// The same, of an amount.
pub fn amount_or_null(description: &str) -> Schema {
    let null = ObjectBuilder::new().schema_type(Type::Null).build();
    match amount_in(description) {
        Schema::OneOf(mut either) => {
            either.items.push(null.into());
            Schema::OneOf(either)
        }
        other => other,
    }
}

/// One or more of something in a parameter, separated by commas.
pub fn several(item: &str, description: &str, example: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(format!("^({item})(,({item})){{0,99}}$")))
        .description(Some(description))
        .examples([json!(example)])
        .build()
}

/// An amount as it may be sent: a number, or a string that holds one.
pub fn amount_in(description: &str) -> Schema {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"))
        .examples([json!("19.99")]);
    // No currency has fewer decimals than none, so no amount is larger.
    let mut number = amount_out("As a number.");
    number.maximum = Some(1_000_000_000_000_i64.into());
    let either = OneOfBuilder::new()
        .item(number)
        .item(text.description(Some("As text, for languages whose numbers are floats.")))
        .description(Some(description))
        .examples([json!(19.99)]);
    Schema::OneOf(either.build())
}

/// An amount as it is returned. No `format`: that would promise a float.
pub fn amount_out(description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Number)
        .minimum(Some(0))
        .description(Some(description))
        .examples([json!(19.99)])
        .build()
}
