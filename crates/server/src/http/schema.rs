//! Pieces of the OpenAPI document that a Rust type alone cannot say.

use serde_json::json;
use utoipa::openapi::schema::{Object, ObjectBuilder, OneOfBuilder, Schema, Type};

/// One of a set of words.
pub fn words(description: &str, words: &[&'static str]) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()))
        .description(Some(description))
        .examples(words.get(2).or(words.first()).map(|word| json!(word)))
        .build()
}

/// An amount as it may be sent: a number, or a string that holds one.
pub fn amount_in(description: &str) -> Schema {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"))
        .examples([json!("19.99")]);
    let either = OneOfBuilder::new()
        .item(amount_out("As a number."))
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
