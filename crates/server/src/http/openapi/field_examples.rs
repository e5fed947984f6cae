//! Examples of fields in the schemas of records and request bodies.

use serde_json::Value;
use utoipa::openapi::{
    Components, RefOr,
    schema::{Object, Schema},
};

/// Removes the examples of fields that are in the example of their whole schema. If the field is null there, its own example
/// stays, unless it is null too.
pub(super) fn remove_repeated(components: &mut Components) {
    for schema in components.schemas.values_mut() {
        if let RefOr::T(Schema::Object(object)) = schema {
            remove_from_fields(object);
        }
    }
}

fn remove_from_fields(object: &mut Object) {
    let Some(Value::Object(whole)) = &object.example else {
        return;
    };
    for (name, field) in &mut object.properties {
        let (RefOr::T(field), Some(value)) = (field, whole.get(name)) else {
            continue;
        };
        let (example, examples) = match field {
            Schema::Object(field) => (&mut field.example, &mut field.examples),
            Schema::Array(field) => (&mut field.example, &mut field.examples),
            _ => continue,
        };
        if !value.is_null() || example.as_ref() == Some(value) {
            *example = None;
            examples.clear();
        }
    }
}
