//! What all operations of the document have in common, said once: nobody need remember it for a new one.

use utoipa::openapi::{
    Header, HeaderBuilder, OpenApi, RefOr, Response,
    path::{Operation, ParameterBuilder},
    schema::{Object, Schema, SchemaType, Type},
};

/// Adds it to every operation.
pub fn describe(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        for operation in operations.into_iter().flatten() {
            parameters_are_never_null(operation);
            parameters_say_what_their_schema_says(operation);
            for (status, response) in &mut operation.responses.responses {
                if let RefOr::T(response) = response {
                    add_headers(status, response);
                }
            }
        }
    }
}

/// One that may be left out is not one that may be null, as its type would have it.
fn parameters_are_never_null(operation: &mut Operation) {
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

/// What a schema of our own says of a parameter is said of the parameter, where readers look for it.
fn parameters_say_what_their_schema_says(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter
            && let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema
        {
            let described = object.description.take();
            parameter.description = parameter.description.take().or(described);
            if let Some(example) = std::mem::take(&mut object.examples).into_iter().next() {
                let shown = ParameterBuilder::from(parameter.clone()).example(Some(example));
                *parameter = shown.build();
            }
        }
    }
}

/// The headers that every answer has, and those of an answer that tells to come back later.
fn add_headers(status: &str, response: &mut Response) {
    let mut add = |name: &str, header: Header| {
        response.headers.insert(name.to_owned(), header.into());
    };
    let header = |kind: Type, description: &str| {
        let schema = Object::with_type(SchemaType::Type(kind));
        let header = HeaderBuilder::new().schema(Some(schema));
        header.description(Some(description)).build()
    };
    let id = "The request's id: the caller's own, if it sent one, or a new one.";
    add("X-Request-Id", header(Type::String, id));
    let version = "The version of the interface, a date.";
    add("API-Version", header(Type::String, version));
    if ["429", "503"].contains(&status) {
        let later = "In how many seconds to try again.";
        add("Retry-After", header(Type::Integer, later));
    }
    if status == "429" {
        let policy = "Who may send how many requests (`q`) in how many seconds (`w`).";
        add("RateLimit-Policy", header(Type::String, policy));
        let standing = "How many of them are left (`r`), and when all are back (`t`).";
        add("RateLimit", header(Type::String, standing));
    }
}
