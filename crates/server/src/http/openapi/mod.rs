//! The parts of the OpenAPI document that all operations share.
//!
//! [`complete`] adds what the attributes of the handlers do not say: the named schemas, the schemas of pages,
//! conditional reads, the headers of responses and examples of problems. Then it moves what several operations have in common to
//! `components`, which halves the document.

mod components;
mod conditional_get;
mod field_examples;
mod page_schemas;
mod parameters;
mod response_headers;

use utoipa::openapi::{
    OpenApi, PathItem, RefOr,
    path::{Operation, ParameterBuilder},
    schema::{Object, Schema, SchemaType, Type},
};

use super::{problem::Code, schema::named};

pub use components::pascal_case;
pub use parameters::{
    AccountIdPath, ClientIdPath, CreatedAtSortParam, CursorParams, EndSessionsParam,
    EntitledUserPath, EventIdPath, ForwardedForParam, IdempotencyKeyParam, IdentityProviderIdPath,
    IfMatchParam, LocalParam, PaymentAccountIdPath, PaymentIdPath, PaymentNotificationIdPath,
    PlanSlugOrIdPath, PlanSlugPath, SessionIdPath, StaffIdPath, SubscriptionIdPath, UserIdPath,
    WebhookEndpointIdPath, sort_order,
};

/// Completes a document whose operations come from the attributes of the handlers.
pub fn complete(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    named::add_to(components);
    field_examples::remove_repeated(components);
    page_schemas::rename(document);
    conditional_get::add_conditional_reads(document);
    for item in document.paths.paths.values_mut() {
        response_headers::add_record_headers(item);
        for operation in operations(item) {
            remove_null_from_parameters(operation);
            move_schema_texts_to_parameters(operation);
            response_headers::add_common_headers(operation);
            add_problem_examples(operation);
        }
    }
    components::share(document);
}

/// Returns the operations of a path.
fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let operations = [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
    ];
    operations.into_iter().flatten()
}

/// Removes null from the types of parameters. utoipa makes optional parameters nullable, but a query or
/// header has no null.
fn remove_null_from_parameters(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(RefOr::T(Schema::Object(Object { schema_type, .. }))) =
                &mut parameter.schema
            && let SchemaType::Array(types) = schema_type
        {
            types.retain(|kind| *kind != Type::Null);
            if let [only] = types.as_slice() {
                *schema_type = SchemaType::Type(only.clone());
            }
        }
    }
}

/// Moves description and example from a parameter's schema to the parameter, where tools show them. A schema with a name
/// keeps its example.
fn move_schema_texts_to_parameters(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else {
            continue;
        };
        let (description, example) = match &mut parameter.schema {
            Some(RefOr::T(Schema::Object(schema))) => {
                let example = std::mem::take(&mut schema.examples).into_iter().next();
                (schema.description.take(), example)
            }
            Some(RefOr::Ref(schema)) => {
                let description = std::mem::take(&mut schema.description);
                (Some(description).filter(|text| !text.is_empty()), None)
            }
            _ => (None, None),
        };
        parameter.description = parameter.description.take().or(description);
        if let Some(example) = example {
            let builder = ParameterBuilder::from(parameter.clone()).example(Some(example));
            *parameter = builder.build();
        }
    }
}

/// Returns the words in backticks of a description.
fn quoted_words(description: &str) -> impl Iterator<Item = &str> {
    description.split('`').skip(1).step_by(2)
}

/// Adds an example to the error responses of an operation: a problem with the first code that the
/// description names. Those that several operations share keep it.
fn add_problem_examples(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else {
            continue;
        };
        let code = quoted_words(&response.description)
            .find_map(|word| Code::ALL.iter().find(|code| code.as_str() == word));
        if let Some(code) = code
            && let Some(RefOr::T(content)) = response.content.get_mut("application/problem+json")
        {
            content.example = code.sample();
        }
    }
}
