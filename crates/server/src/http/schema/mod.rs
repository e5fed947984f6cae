//! OpenAPI schemas of field types, with more detail than utoipa derives from Rust types.
//!
//! [`pattern`] has their regular expressions, and [`named`] those that fields refer to by name.

pub mod named;
pub mod pattern;

use serde_json::{Value, json};
use utoipa::openapi::{
    RefOr, SchemaFormat,
    schema::{Object, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type},
};

use pattern::anchored;

/// Describes one line of text: not blank, without control characters.
pub fn single_line(description: &str, max_length: usize, example: &str) -> Object {
    text(description, max_length, example)
        .min_length(Some(1))
        .pattern(Some(anchored(&pattern::single_line())))
        .build()
}

/// Describes text with any number of lines. Tabs and line breaks are the only control characters allowed.
pub fn multi_line(description: &str, max_length: usize, example: &str) -> Object {
    text(description, max_length, example)
        .pattern(Some(anchored(&pattern::multi_line())))
        .build()
}

fn text(description: &str, max_length: usize, example: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .max_length(Some(max_length))
        .description(Some(description))
        .examples([json!(example)])
}

/// Describes `true` or `false`.
pub fn boolean(description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .description(Some(description))
        .examples([json!(true)])
        .build()
}

/// Adds null to the types of a schema that is not a reference.
pub fn nullable(mut object: Object) -> Object {
    if let SchemaType::Type(only) = object.schema_type {
        object.schema_type = SchemaType::Array(vec![only, Type::Null]);
    }
    if let Some(values) = &mut object.enum_values {
        values.push(Value::Null);
    }
    object
}

/// Returns a schema that also allows null.
pub fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::Object(object)) => nullable(object).into(),
        RefOr::T(Schema::Array(mut array)) => {
            if let SchemaType::Type(only) = array.schema_type {
                array.schema_type = SchemaType::Array(vec![only, Type::Null]);
            }
            array.into()
        }
        RefOr::Ref(mut reference) => {
            // The description belongs to the field, whichever of both it is.
            let description = std::mem::take(&mut reference.description);
            let null = ObjectBuilder::new().schema_type(Type::Null);
            OneOfBuilder::new()
                .item(reference)
                .item(null)
                .description(Some(description))
                .into()
        }
        other @ RefOr::T(_) => other,
    }
}

/// Describes an amount in a response: a number with the currency's decimals, which a float may round.
pub fn amount_output(description: &str) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Number)
        .format(Some(SchemaFormat::Custom("decimal".to_owned())))
        .minimum(Some(0))
        .description(Some(description))
        .examples([json!(19.99)])
        .build()
}

/// Describes an amount in a response that can be negative.
pub fn signed_amount_output(description: &str) -> Object {
    let mut amount = amount_output(description);
    amount.minimum = None;
    amount
}
