//! Parts of the OpenAPI document that many operations share: parameters and response headers.

use utoipa::{
    IntoParams,
    openapi::{
        Header, HeaderBuilder, OpenApi, PathItem, RefOr, Response,
        path::{Operation, ParameterBuilder},
        schema::{Object, Schema, SchemaType, Type},
    },
};

/// The header of operations that create a record.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(
    dead_code,
    reason = "describes the header that `IdempotencyKey` parses"
)]
pub struct IdempotencyKeyParam {
    /// Identifies the request. A retry with the same key within 24 hours returns the same response (with
    /// `Idempotency-Replayed: true`) and creates nothing.
    #[param(
        rename = "Idempotency-Key",
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]([ -~]*[!-~])?$",
        example = "5f0c9a52-8f1e-4c39-9d3a-0d5a4c1a7b11"
    )]
    idempotency_key: Option<String>,
}

/// The header of operations that update or delete a record.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes the header that `IfMatch` parses")]
pub struct IfMatchParam {
    /// The ETag that the record must have, else the request fails with 412.
    #[param(rename = "If-Match", example = "*")]
    if_match: Option<String>,
}

/// The parameters `limit` and `cursor` of lists.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "describes the parameters that `PageRequest` parses"
)]
pub struct CursorParams {
    /// The maximum number of records on a page. Default: 50.
    #[param(minimum = 1, maximum = 200, example = 50)]
    limit: Option<i64>,
    /// The `next_cursor` of the previous page. Filters and sort order must be the same.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// Adds the shared response headers to every operation of the document and corrects its parameters.
pub fn complete(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        add_record_headers(item);
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        for operation in operations.into_iter().flatten() {
            remove_null_from_parameters(operation);
            move_schema_texts_to_parameters(operation);
            for (status, response) in &mut operation.responses.responses {
                if let RefOr::T(response) = response {
                    add_common_headers(status, response);
                }
            }
        }
    }
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

/// Moves description and example from a parameter's schema to the parameter, where tools show them.
fn move_schema_texts_to_parameters(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
        {
            let description = schema.description.take();
            parameter.description = parameter.description.take().or(description);
            if let Some(example) = std::mem::take(&mut schema.examples).into_iter().next() {
                let builder = ParameterBuilder::from(parameter.clone()).example(Some(example));
                *parameter = builder.build();
            }
        }
    }
}

/// Adds the headers of created records, and the ETag of records that can be changed with If-Match.
fn add_record_headers(item: &mut PathItem) {
    let etag = "The entity tag of the record, for If-Match.";
    if let Some(post) = &mut item.post
        && has_parameter(post, "Idempotency-Key")
    {
        add_header(post, "201", "Location", "The path of the created record.");
        add_header(post, "201", "ETag", etag);
        let replayed = "`true` if this is the stored response to an earlier request with the same Idempotency-Key.";
        add_header(post, "201", "Idempotency-Replayed", replayed);
    }
    let is_conditional = |operation: &Option<Operation>| {
        operation
            .as_ref()
            .is_some_and(|operation| has_parameter(operation, "If-Match"))
    };
    if is_conditional(&item.put) || is_conditional(&item.delete) {
        for operation in [&mut item.get, &mut item.put].into_iter().flatten() {
            add_header(operation, "200", "ETag", etag);
        }
    }
}

fn has_parameter(operation: &Operation, name: &str) -> bool {
    let mut parameters = operation.parameters.iter().flatten();
    parameters.any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == name))
}

fn add_header(operation: &mut Operation, status: &str, name: &str, description: &str) {
    if let Some(RefOr::T(response)) = operation.responses.responses.get_mut(status) {
        let header = header(Type::String, description);
        response.headers.insert(name.to_owned(), header.into());
    }
}

fn header(kind: Type, description: &str) -> Header {
    let schema = Object::with_type(SchemaType::Type(kind));
    let header = HeaderBuilder::new().schema(Some(schema));
    header.description(Some(description)).build()
}

/// Adds the headers that every response has, and those of 429 and 503 responses.
fn add_common_headers(status: &str, response: &mut Response) {
    let mut add = |name: &str, kind: Type, description: &str| {
        let header = header(kind, description);
        response.headers.insert(name.to_owned(), header.into());
    };
    let id = "The request's id: the client's own, if it sent a valid one, or a new one.";
    add("X-Request-Id", Type::String, id);
    add(
        "API-Version",
        Type::String,
        "The version of the API, a date.",
    );
    if ["429", "503"].contains(&status) {
        let seconds = "The number of seconds to wait before a retry.";
        add("Retry-After", Type::Integer, seconds);
    }
    if status == "429" {
        let policy = "The quota (`q`) and its window in seconds (`w`).";
        add("RateLimit-Policy", Type::String, policy);
        let limit =
            "The requests left (`r`) and the seconds until the whole quota is available (`t`).";
        add("RateLimit", Type::String, limit);
    }
}
