//! Filters of lists in the OpenAPI document.

use utoipa::openapi::{
    RefOr, Required,
    path::{Parameter, ParameterBuilder, ParameterIn},
    schema::Schema,
};

use super::schema::named;

/// Describes an optional query parameter.
pub fn filter(name: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .schema(Some(schema))
        .build()
}

/// Describes the four bounds of a time.
pub fn time_range(bounds: [&str; 4]) -> Vec<Parameter> {
    let descriptions = [
        "Only at or after this time.",
        "Only after this time.",
        "Only before this time.",
        "Only at or before this time.",
    ];
    let pairs = bounds.into_iter().zip(descriptions);
    pairs
        .map(|(name, description)| filter(name, named::TIMESTAMP.reference(description)))
        .collect()
}

/// Describes a filter by ids of another system.
pub fn external_ids(name: &str, description: &str, example: &str) -> Parameter {
    let parameter = filter(name, named::EXTERNAL_ID_LIST.reference(description));
    ParameterBuilder::from(parameter)
        .example(Some(example.into()))
        .build()
}
