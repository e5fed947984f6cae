//! OpenAPI schemas of request bodies.
//!
//! A feature lists its fields once. The schemas for creating and updating a record follow from
//! whether a field is required, has a default, can be null or can change.

use serde_json::Value;
use utoipa::openapi::{
    RefOr,
    schema::{AdditionalProperties, ObjectBuilder, Schema, SchemaType, Type},
};

/// A field of request bodies.
pub struct RequestField {
    name: &'static str,
    schema: fn() -> Schema,
    presence: Presence,
    immutable: bool,
}

/// Whether a field may be absent or null.
enum Presence {
    /// A create request must have a value.
    Required,
    /// A create request uses the default if the field is absent or null; an update cannot set null.
    Default,
    /// The value can be null.
    Nullable,
}

impl RequestField {
    /// Describes a field that a create request must have.
    pub const fn required(name: &'static str, schema: fn() -> Schema) -> Self {
        Self::new(name, schema, Presence::Required)
    }

    /// Describes a field with a default other than null. The value of the default is set where the body
    /// is parsed; `schema` can state it in its description.
    pub const fn with_default(name: &'static str, schema: fn() -> Schema) -> Self {
        Self::new(name, schema, Presence::Default)
    }

    /// Describes a field that can be null.
    pub const fn nullable(name: &'static str, schema: fn() -> Schema) -> Self {
        Self::new(name, schema, Presence::Nullable)
    }

    const fn new(name: &'static str, schema: fn() -> Schema, presence: Presence) -> Self {
        Self {
            name,
            schema,
            presence,
            immutable: false,
        }
    }

    /// Excludes the field from updates.
    #[must_use]
    pub const fn immutable(mut self) -> Self {
        self.immutable = true;
        self
    }
}

/// Returns the schema of a body that creates a record.
pub fn create_schema(fields: &[RequestField], description: &str, example: Value) -> RefOr<Schema> {
    let properties = fields.iter().map(|field| {
        let required = matches!(field.presence, Presence::Required);
        let schema = (field.schema)();
        let schema = if required { schema } else { nullable(schema) };
        (field.name, schema, required)
    });
    object(properties, description, example)
}

/// Returns the schema of a body that updates a record: every field is optional.
pub fn update_schema(fields: &[RequestField], description: &str, example: Value) -> RefOr<Schema> {
    let mutable = fields.iter().filter(|field| !field.immutable);
    let properties = mutable.map(|field| {
        let schema = (field.schema)();
        let schema = match field.presence {
            Presence::Nullable => nullable(schema),
            Presence::Required | Presence::Default => schema,
        };
        (field.name, schema, false)
    });
    object(properties, description, example)
}

fn object(
    properties: impl Iterator<Item = (&'static str, Schema, bool)>,
    description: &str,
    example: Value,
) -> RefOr<Schema> {
    let mut object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(description))
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    for (name, schema, required) in properties {
        object = object.property(name, schema);
        if required {
            object = object.required(name);
        }
    }
    with_example(object, example).into()
}

/// Sets the keyword `example`, as the schemas derived by utoipa do.
#[expect(
    deprecated,
    reason = "OpenAPI 3.1 prefers `examples`, but still allows `example`"
)]
pub fn with_example(object: ObjectBuilder, example: impl Into<Value>) -> Schema {
    object.example(Some(example.into())).into()
}

/// Adds null to the types of an object, array or `oneOf` schema. Returns any other schema unchanged.
fn nullable(schema: Schema) -> Schema {
    let or_null = |schema_type| match schema_type {
        SchemaType::Type(only) => SchemaType::Array(vec![only, Type::Null]),
        other => other,
    };
    match schema {
        Schema::Object(object) => Schema::Object(super::schema::nullable(object)),
        Schema::Array(mut array) => {
            array.schema_type = or_null(array.schema_type);
            Schema::Array(array)
        }
        Schema::OneOf(mut one_of) => {
            let null = ObjectBuilder::new().schema_type(Type::Null).build();
            one_of.items.push(null.into());
            Schema::OneOf(one_of)
        }
        other => other,
    }
}

/// Defines the type that stands for a request body in the OpenAPI document.
macro_rules! request_body {
    ($name:ident, $schema:ident($fields:expr), $description:literal, $($example:tt)+) => {
        pub struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let example = serde_json::json!($($example)+);
                $crate::http::request_schema::$schema($fields, $description, example)
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}
pub(crate) use request_body;
