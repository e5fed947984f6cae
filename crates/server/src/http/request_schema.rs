//! OpenAPI schemas of request bodies.
//!
//! A feature lists its fields once. The schemas for creating and updating a record follow from
//! whether a field is required, has a default or can be null. Both allow every field of the response,
//! so that a client can send a record back.

use serde_json::Value;
use utoipa::openapi::{
    RefOr,
    schema::{AdditionalProperties, ObjectBuilder, Schema, Type},
};

use super::schema::{named::IGNORED, or_null};

/// A field of request bodies.
pub struct RequestField {
    name: &'static str,
    schema: fn() -> RefOr<Schema>,
    on_create: Presence,
    on_update: Presence,
    create_note: &'static str,
    update_note: &'static str,
}

/// Whether a field may be absent or null.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// Absent or a value.
    Optional,
    /// Absent, null or a value.
    Nullable,
    /// Absent, or anything.
    Ignored,
}

impl RequestField {
    /// Describes a field that a create request must have.
    pub const fn required(name: &'static str, schema: fn() -> RefOr<Schema>) -> Self {
        Self::new(name, schema, Presence::Required, Presence::Optional)
    }

    /// Describes a field with a default other than null: a create request uses it if the field is absent or
    /// null. The value of the default is set where the body is parsed; `schema` can state it in its
    /// description.
    pub const fn with_default(name: &'static str, schema: fn() -> RefOr<Schema>) -> Self {
        Self::new(name, schema, Presence::Nullable, Presence::Optional)
    }

    /// Describes a field that can be null.
    pub const fn nullable(name: &'static str, schema: fn() -> RefOr<Schema>) -> Self {
        Self::new(name, schema, Presence::Nullable, Presence::Nullable)
    }

    /// Describes a field that the service sets. A create request ignores it; an update must have the
    /// current value.
    pub const fn generated(name: &'static str, schema: fn() -> RefOr<Schema>) -> Self {
        Self::new(name, schema, Presence::Ignored, Presence::Optional)
    }

    /// Describes a field like [`Self::generated`] that can be null.
    pub const fn generated_nullable(name: &'static str, schema: fn() -> RefOr<Schema>) -> Self {
        Self::new(name, schema, Presence::Ignored, Presence::Nullable)
    }

    const fn new(
        name: &'static str,
        schema: fn() -> RefOr<Schema>,
        on_create: Presence,
        on_update: Presence,
    ) -> Self {
        Self {
            name,
            schema,
            on_create,
            on_update,
            create_note: "",
            update_note: "",
        }
    }

    /// Appends sentences to the description of the field in create requests, such as its default.
    #[must_use]
    pub const fn create_note(self, note: &'static str) -> Self {
        Self {
            create_note: note,
            ..self
        }
    }

    /// Appends sentences to the description of the field in update requests, such as the effect of a change.
    #[must_use]
    pub const fn update_note(self, note: &'static str) -> Self {
        Self {
            update_note: note,
            ..self
        }
    }
}

/// Returns the schema of a body that creates a record. Fields in `ignored` can have any value.
pub fn create_schema(
    fields: &[RequestField],
    ignored: &[&'static str],
    description: &str,
    example: Value,
) -> RefOr<Schema> {
    let fields = fields
        .iter()
        .map(|field| (field, field.on_create, field.create_note));
    object(fields, ignored, description, example)
}

/// Returns the schema of a body that updates a record: every field is optional. Fields in `ignored` can
/// have any value.
pub fn update_schema(
    fields: &[RequestField],
    ignored: &[&'static str],
    description: &str,
    example: Value,
) -> RefOr<Schema> {
    let fields = fields
        .iter()
        .map(|field| (field, field.on_update, field.update_note));
    object(fields, ignored, description, example)
}

#[expect(
    deprecated,
    reason = "OpenAPI 3.1 prefers `examples`, but utoipa derives `example` for the other schemas"
)]
fn object<'a>(
    fields: impl Iterator<Item = (&'a RequestField, Presence, &'static str)>,
    ignored: &[&'static str],
    description: &str,
    example: Value,
) -> RefOr<Schema> {
    let any = || RefOr::Ref(IGNORED.reference(""));
    let mut object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some(description))
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .example(Some(example));
    for (field, presence, note) in fields {
        let schema = || with_note((field.schema)(), note);
        let schema = match presence {
            Presence::Required | Presence::Optional => schema(),
            Presence::Nullable => or_null(schema()),
            Presence::Ignored => any(),
        };
        object = object.property(field.name, schema);
        if presence == Presence::Required {
            object = object.required(field.name);
        }
    }
    for name in ignored {
        object = object.property(*name, any());
    }
    object.into()
}

/// Appends sentences to the description of a schema.
fn with_note(mut schema: RefOr<Schema>, note: &str) -> RefOr<Schema> {
    let description = match &mut schema {
        RefOr::Ref(reference) => Some(&mut reference.description),
        RefOr::T(Schema::Object(object)) => object.description.as_mut(),
        RefOr::T(Schema::Array(array)) => array.description.as_mut(),
        RefOr::T(_) => None,
    };
    if let Some(description) = description
        && !note.is_empty()
    {
        description.push(' ');
        description.push_str(note);
    }
    schema
}

/// Defines the type that stands for a request body in the OpenAPI document.
macro_rules! request_body {
    ($name:ident, $schema:ident($fields:expr, $ignored:expr), $description:literal, $($example:tt)+) => {
        pub struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let example = serde_json::json!($($example)+);
                $crate::http::request_schema::$schema($fields, $ignored, $description, example)
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
