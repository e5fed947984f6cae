//! The schemas of pages: `PlanPage` instead of `Page_Plan`, with a reference to the record's schema.

use serde_json::json;
use utoipa::openapi::{
    OpenApi, Ref, RefOr,
    schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type},
};

/// The prefix of the names that utoipa gives to the schemas of `Page<T>`.
const DERIVED_PREFIX: &str = "Page_";

/// Replaces the schemas that utoipa derives from `Page<T>`, which repeat the record's schema.
pub(super) fn rename(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    let derived: Vec<String> = components
        .schemas
        .keys()
        .filter_map(|name| name.strip_prefix(DERIVED_PREFIX).map(str::to_owned))
        .collect();
    for record in &derived {
        components
            .schemas
            .remove(&format!("{DERIVED_PREFIX}{record}"));
        let name = format!("{record}Page");
        components.schemas.insert(name, page_schema(record));
    }
    let items = document.paths.paths.values_mut();
    let operations = items.flat_map(super::operations);
    let responses = operations.flat_map(|operation| operation.responses.responses.values_mut());
    for response in responses {
        let RefOr::T(response) = response else {
            continue;
        };
        for content in response.content.values_mut() {
            if let RefOr::T(content) = content
                && let Some(RefOr::Ref(schema)) = &mut content.schema
                && let Some((_, record)) = schema.ref_location.split_once(DERIVED_PREFIX)
            {
                *schema = Ref::from_schema_name(format!("{record}Page"));
            }
        }
    }
}

/// Describes `Page<T>` of `http::pagination`. Tools combine its example from those of its fields.
fn page_schema(record: &str) -> RefOr<Schema> {
    let data = ArrayBuilder::new()
        .items(Ref::from_schema_name(record))
        .description(Some("The records of this page."));
    let has_more = ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .description(Some("Whether there are more pages."))
        .examples([json!(false)]);
    let next_cursor = ObjectBuilder::new()
        .schema_type(SchemaType::Array(vec![Type::String, Type::Null]))
        .description(Some("The `cursor` of the next page; null on the last one."))
        .examples([json!(null)]);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("A page of a list."))
        .property("data", data)
        .property("has_more", has_more)
        .property("next_cursor", next_cursor)
        .required("data")
        .required("has_more")
        .required("next_cursor")
        .into()
}
