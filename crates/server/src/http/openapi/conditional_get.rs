//! `If-None-Match` and 304 in the OpenAPI document, for every read with an entity tag.

use utoipa::openapi::{
    HeaderBuilder, OpenApi, RefOr, Required, ResponseBuilder,
    path::{Operation, ParameterBuilder, ParameterIn},
    schema::{ObjectBuilder, Type},
};

/// Reads whose responses must not be stored, or that have other cache headers.
const WITHOUT_TAG: [&str; 4] = [
    "/authentication/",
    "/.well-known/",
    "/events",
    "/users/{id}/timeline",
];

/// Adds the header, the response and the entity tag to all reads of records and lists.
pub(super) fn add_conditional_reads(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let has_tag = !WITHOUT_TAG.iter().any(|prefix| path.starts_with(prefix));
        if let Some(get) = item.get.as_mut().filter(|_| has_tag) {
            add_conditional_read(get);
        }
    }
}

fn add_conditional_read(get: &mut Operation) {
    let text = || ObjectBuilder::new().schema_type(Type::String).build();
    let description = "The ETag of the response that you have. If it is still current, the response is 304 without a body.";
    let parameter = ParameterBuilder::new()
        .name("If-None-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .schema(Some(text()))
        .description(Some(description))
        .example(Some("\"3q2-7w\"".into()));
    get.parameters
        .get_or_insert_default()
        .push(parameter.build().into());
    let responses = &mut get.responses.responses;
    let unchanged = ResponseBuilder::new()
        .description("The response that you have is current (If-None-Match).")
        .build();
    responses.insert("304".to_owned(), unchanged.into());
    for status in ["200", "304"] {
        if let Some(RefOr::T(response)) = responses.get_mut(status)
            && !response.headers.contains_key("ETag")
        {
            let header = HeaderBuilder::new().schema(Some(text()));
            let header = header.description(Some("The entity tag of the response."));
            response
                .headers
                .insert("ETag".to_owned(), header.build().into());
        }
    }
}
