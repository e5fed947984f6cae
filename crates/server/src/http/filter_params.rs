//! Filters of lists in the OpenAPI document.

use perennial_domain::Id;
use utoipa::openapi::{
    RefOr, Required,
    path::{Parameter, ParameterBuilder, ParameterIn},
    schema::Schema,
};

use super::schema::{comma_separated, named, pattern};

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

/// Describes a filter by the ids of records.
pub fn ids<I: Id>(name: &str, description: &str) -> Parameter {
    let example = format!("{}_0192f0c1a2b37c4d8e5f60718293a4b5", I::PREFIX);
    let item = pattern::id(I::PREFIX);
    filter(name, comma_separated(&item, description, &example))
}

/// Describes a filter by ids of another system.
pub fn external_ids(name: &str, description: &str, example: &str) -> Parameter {
    let description = format!("{description} An id that contains a comma cannot be found.");
    let item = pattern::listed_line();
    filter(name, comma_separated(&item, &description, example))
}

/// Describes a filter by any of the values of an enum, in any case and with its aliases.
pub fn one_of<const N: usize, const A: usize>(
    name: &str,
    values: [&'static str; N],
    aliases: [&'static str; A],
    description: &str,
    example: &str,
) -> Parameter {
    let item = pattern::any_case(values.into_iter().chain(aliases));
    filter(name, comma_separated(&item, description, example))
}

/// Describes a filter that is true or false.
pub fn boolean(name: &str, description: &str) -> Parameter {
    filter(name, comma_separated("true|false", description, "true"))
}

/// Describes a filter by the slugs of plans.
pub fn slugs(name: &str, description: &str) -> Parameter {
    filter(name, comma_separated(&pattern::slug(), description, "pro"))
}

/// Describes a filter by currencies.
pub fn currencies(name: &str, description: &str) -> Parameter {
    let item = &named::CURRENCY_PATTERN;
    filter(name, comma_separated(item, description, "USD"))
}
