//! Moves headers, parameters and responses that operations have in common to `components`.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::openapi::{
    Components, Content, OpenApi, Ref, RefOr, Response,
    path::{Operation, Parameter, ParameterIn},
};

/// Replaces shared parts by references.
pub(super) fn share(document: &mut OpenApi) {
    let mut components = document.components.take().unwrap_or_default();
    share_headers(document, &mut components);
    share_parameters(document, &mut components);
    share_responses(document, &mut components);
    remove_own_problem_examples(document);
    document.components = Some(components);
}

fn operations(document: &mut OpenApi) -> impl Iterator<Item = &mut Operation> {
    document
        .paths
        .paths
        .values_mut()
        .flat_map(super::operations)
}

/// A header with the name of another one, but different, stays in its response.
fn share_headers(document: &mut OpenApi, components: &mut Components) {
    let responses =
        operations(document).flat_map(|operation| operation.responses.responses.values_mut());
    for response in responses {
        let RefOr::T(response) = response else {
            continue;
        };
        for (name, header) in &mut response.headers {
            let shared = components.headers.entry(name.clone());
            if shared.or_insert_with(|| header.clone()) == header {
                *header = RefOr::Ref(Ref::new(format!("#/components/headers/{name}")));
            }
        }
    }
}

/// How many operations have a parameter or response, by its JSON.
struct Uses(BTreeMap<String, usize>);

impl Uses {
    fn count<T: serde::Serialize>(all: impl Iterator<Item = T>) -> Self {
        let mut counts = BTreeMap::new();
        for one in all {
            *counts.entry(json(&one)).or_insert(0) += 1;
        }
        Self(counts)
    }

    fn is_shared(&self, one: &impl serde::Serialize) -> bool {
        self.0.get(&json(one)).is_some_and(|count| *count > 1)
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn share_parameters(document: &mut OpenApi, components: &mut Components) {
    let all = operations(document).flat_map(|operation| operation.parameters.iter().flatten());
    let uses = Uses::count(all);
    for operation in operations(document) {
        for parameter in operation.parameters.iter_mut().flatten() {
            let RefOr::T(own) = parameter else { continue };
            if !uses.is_shared(own) {
                continue;
            }
            let name = parameter_name(own);
            let shared = components.parameters.entry(name.clone());
            if shared.or_insert_with(|| parameter.clone()) == parameter {
                *parameter = RefOr::Ref(Ref::new(format!("#/components/parameters/{name}")));
            }
        }
    }
}

/// Returns the name of the schema of a path parameter, such as `SubscriptionId`, or of the parameter itself.
fn parameter_name(parameter: &Parameter) -> String {
    match &parameter.schema {
        Some(RefOr::Ref(schema)) if parameter.parameter_in == ParameterIn::Path => {
            schema_name(schema).to_owned()
        }
        _ => pascal_case(&parameter.name),
    }
}

fn share_responses(document: &mut OpenApi, components: &mut Components) {
    let all = operations(document).flat_map(|operation| operation.responses.responses.values());
    let uses = Uses::count(all);
    for operation in operations(document) {
        for (status, response) in &mut operation.responses.responses {
            let RefOr::T(own) = response else { continue };
            if !uses.is_shared(own) {
                continue;
            }
            let name = response_name(status, own);
            let shared = components.responses.entry(name.clone());
            if shared.or_insert_with(|| response.clone()) == response {
                *response = RefOr::Ref(Ref::new(format!("#/components/responses/{name}")));
            }
        }
    }
}

/// Returns the name of the schema, such as `Plan`, or the problem code if the description names only one, such as
/// `PlanNotFound`, or the reason phrase of the status.
fn response_name(status: &str, response: &Response) -> String {
    if let Some(RefOr::T(content)) = response.content.get("application/json")
        && let Some(RefOr::Ref(schema)) = &content.schema
    {
        return schema_name(schema).to_owned();
    }
    let words: Vec<&str> = super::quoted_words(&response.description).collect();
    if let [only] = words.as_slice() {
        return pascal_case(only);
    }
    let status = StatusCode::from_bytes(status.as_bytes()).ok();
    let reason = status.and_then(|status| status.canonical_reason());
    pascal_case(reason.unwrap_or("Error"))
}

/// Returns the name of the schema that a reference points to.
fn schema_name(schema: &Ref) -> &str {
    schema.ref_location.rsplit('/').next().unwrap_or_default()
}

/// Removes the examples of problems that only one operation has. Tools combine an example from those of the problem's
/// fields, and the page of each code has a sample.
fn remove_own_problem_examples(document: &mut OpenApi) {
    let own = operations(document).flat_map(|operation| operation.responses.responses.values_mut());
    for content in own.filter_map(problem_content) {
        content.example = None;
    }
}

fn problem_content(response: &mut RefOr<Response>) -> Option<&mut Content> {
    let RefOr::T(response) = response else {
        return None;
    };
    match response.content.get_mut("application/problem+json")? {
        RefOr::T(content) => Some(content),
        RefOr::Ref(_) => None,
    }
}

/// Joins the words of a name: `subscription.past_due` becomes `SubscriptionPastDue`.
pub fn pascal_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .flat_map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            [first.to_ascii_uppercase(), rest.to_owned()]
        })
        .collect()
}
