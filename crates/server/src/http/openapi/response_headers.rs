//! Headers of responses in the document.

use utoipa::openapi::{
    Header, HeaderBuilder, PathItem, RefOr,
    path::Operation,
    schema::{Object, SchemaType, Type},
};

/// Adds the headers of created records, and the ETag of records that can be changed with If-Match.
pub(super) fn add_record_headers(item: &mut PathItem) {
    let etag = "The entity tag of the response.";
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

/// Adds the headers of 429 and 503 responses. `X-Request-Id` and `API-Version`, which every response has, are in the description of
/// the document.
pub(super) fn add_common_headers(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else {
            continue;
        };
        let mut add = |name: &str, kind: Type, description: &str| {
            let header = header(kind, description);
            response.headers.insert(name.to_owned(), header.into());
        };
        if ["429", "503"].contains(&status.as_str()) {
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
}
