//! The OpenAPI document is valid, complete and consistent with the router and the code.

mod patterns;

use std::{collections::BTreeSet, process::Command, sync::Arc};

use perennial::{
    app::App,
    clock::Clock,
    config::{Config, EnvReader},
    crypto::DerivedKeys,
    http::problem::Code,
    router,
};
use perennial_domain::EventKind;
use reqwest::Method;
use serde_json::Value;

use crate::{
    architecture::{crate_path, rust_files},
    harness::{
        generated_file,
        process::{Variables, run_ok},
        service::Service,
        webhook_receiver::WebhookReceiver,
    },
    webhooks,
};

/// The API before events and webhooks had 150,000 bytes for 38 operations.
const MAX_BYTES_PER_OPERATION: usize = 150_000 / 38;

/// Whether a path is a documentation page, which the document does not describe.
fn is_page(path: &str) -> bool {
    let pages = [
        "/",
        "/openapi.json",
        "/docs",
        "/console",
        "/console/",
        "/console/{*path}",
    ];
    pages.contains(&path) || path.starts_with("/docs/")
}

fn document() -> Value {
    serde_json::from_str(&run_ok(&Variables::new(), &["openapi"])).unwrap()
}

/// Returns all operations as (path, method, operation).
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((path.clone(), method.to_uppercase(), operation.clone()));
        }
    }
    all
}

/// Follows a reference, if there is one.
fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

fn names(object: &Value) -> BTreeSet<String> {
    object
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

#[test]
fn document_is_valid_openapi_3_1() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let file = std::env::temp_dir().join(format!("perennial-openapi-{}.json", std::process::id()));
    std::fs::write(&file, document.to_string()).unwrap();
    let validator = crate_path("../../.tools/venv/bin/openapi-spec-validator");
    let output = Command::new(&validator).arg(&file).output();
    let output =
        output.unwrap_or_else(|error| panic!("{}: {error}; run `just setup`", validator.display()));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    std::fs::remove_file(file).unwrap();
}

/// `just reference` writes the document.
#[test]
fn openapi_document_is_current() {
    let document = run_ok(&Variables::new(), &["openapi"]);
    generated_file::assert_current("openapi.json", &document);
}

/// Reads the router's paths from axum's `Debug` output.
#[tokio::test]
async fn document_names_the_service_as_its_server() {
    let service = Service::start().await;
    let served = service.anonymous().get("/openapi.json").await.json();
    assert_eq!(served["servers"][0]["url"], service.server.url);
}

#[tokio::test]
async fn documented_paths_match_the_router() {
    let variables = [
        ("DATABASE_URL", "postgres://127.0.0.1:1/x"),
        ("PERENNIAL_MODE", "sandbox"),
        ("PERENNIAL_MASTER_KEY", crate::harness::process::MASTER_KEY),
    ];
    let mut reader =
        EnvReader::new(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let config = Config::read(&mut reader).unwrap();
    let app = Arc::new(
        App::new(
            &config,
            &DerivedKeys::new(
                &config
                    .master_key
                    .load_or_create(perennial::randomness::Randomness)
                    .unwrap(),
            ),
            Clock::System,
        )
        .unwrap(),
    );
    let printed = format!(
        "{:?}",
        router::router(&app, &router::openapi(&app.public_url), true).unwrap()
    );
    let paths = printed
        .split("paths: {")
        .nth(1)
        .expect("axum prints the router's paths")
        .split('}')
        .collect::<Vec<_>>()
        .join("}");
    let routed: BTreeSet<String> = paths
        .match_indices("\"/")
        .map(|(at, _)| paths[at + 1..].split('"').next().unwrap().to_owned())
        .filter(|path| !is_page(path))
        .collect();
    assert_eq!(routed, names(&document()["paths"]));
}

/// An undocumented method returns 405 with the documented ones.
///
/// Malformed input: 56.
#[tokio::test]
async fn documented_methods_match_the_router() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let document = document();
    for path in names(&document["paths"]) {
        let documented = names(&document["paths"][&path]);
        let concrete = path
            .replace("{slug}", "none")
            .replace("{id}", "none")
            .replace("{auth_id}", "none");
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "PROPFIND", "PURGE",
        ] {
            let response = api
                .try_send(
                    Method::from_bytes(method.as_bytes()).unwrap(),
                    &concrete,
                    None,
                )
                .await
                .unwrap();
            if documented.contains(&method.to_lowercase()) {
                assert_ne!(response.status, 405, "{method} {path}");
            } else {
                response.assert_problem(405, "method_not_allowed");
                let allowed: BTreeSet<String> = response
                    .header("allow")
                    .split(',')
                    .map(|word| word.trim().to_lowercase())
                    .filter(|word| word != "head")
                    .collect();
                assert_eq!(allowed, documented, "{path}");
            }
        }
    }
}

/// Whether a parameter, request body or response has an example, its own or the schema's.
fn has_example(document: &Value, part: &Value) -> bool {
    let own = part.get("example").is_some();
    let named = part["examples"].as_object().into_iter().flatten();
    let is_value = |example| resolve(document, example).get("value").is_some();
    own || named.map(|(_, example)| example).any(is_value)
        || schema_has_example(document, &part["schema"])
}

/// Whether a schema has an example, its own or one that tools combine from all its fields, items or parts.
fn schema_has_example(document: &Value, schema: &Value) -> bool {
    let schema = resolve(document, schema);
    let fields = schema["properties"].as_object();
    let have_examples = |fields: &serde_json::Map<String, Value>| {
        fields
            .values()
            .all(|field| schema_has_example(document, field))
    };
    schema.get("example").is_some()
        || schema["examples"].get(0).is_some()
        || fields.is_some_and(have_examples)
        || (schema["items"].is_object() && schema_has_example(document, &schema["items"]))
        || schema["allOf"]
            .as_array()
            .is_some_and(|parts| parts.iter().all(|part| schema_has_example(document, part)))
}

#[test]
fn operations_and_schemas_are_described() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let place = format!("{method} {path}");
        for field in ["summary", "description", "operationId"] {
            assert!(
                operation[field]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{place} has no {field}"
            );
        }
        // Path parameters are documented.
        let in_path: BTreeSet<String> = path
            .match_indices('{')
            .map(|(at, _)| path[at + 1..].split('}').next().unwrap().to_owned())
            .collect();
        let listed = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let listed: Vec<&Value> = listed
            .iter()
            .map(|parameter| resolve(&document, parameter))
            .collect();
        let described: BTreeSet<String> = listed
            .iter()
            .filter(|p| p["in"] == "path")
            .map(|p| p["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(in_path, described, "{place}");
        for parameter in &listed {
            // A cursor is signed, so that no example would work.
            let has_example = has_example(&document, parameter) || parameter["name"] == "cursor";
            assert!(
                parameter["description"].is_string() && has_example,
                "{place}: {parameter}"
            );
        }
        // These have no body.
        let without_body = path == "/authentication/user-logged-in"
            || path == "/sandbox/demo-data"
            || path.starts_with("/authentication/tokens/")
            || ["/enable", "/export", "/replay", "/rotate-secret", "/test"]
                .iter()
                .any(|action| path.ends_with(action));
        let has_body = ["POST", "PUT"].contains(&method.as_str()) && !without_body;
        assert!(
            !has_body || operation["requestBody"]["required"] == true,
            "{place} has no body"
        );
        let open = operation["security"] == serde_json::json!([{}]);
        let always = ["500", "503", "401", "403"];
        for status in always.into_iter().take(if open { 2 } else { 4 }) {
            assert!(
                operation["responses"][status].is_object(),
                "{place} does not document {status}"
            );
        }
        let body = &operation["requestBody"]["content"]["application/json"];
        assert!(
            body.is_null() || has_example(&document, body),
            "{place}: the request body has no example"
        );
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolve(&document, response);
            for (media_type, content) in response["content"].as_object().into_iter().flatten() {
                assert!(
                    has_example(&document, content),
                    "{place} {status}: {media_type} has no example"
                );
            }
            assert!(
                response["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{place} {status}"
            );
            let error = status.as_str() >= "400";
            assert!(
                !error || response["content"]["application/problem+json"].is_object(),
                "{place} {status}"
            );
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].is_string(), "{name}");
        for (property, described) in schema["properties"].as_object().into_iter().flatten() {
            let text = described.get("description");
            let text = text.unwrap_or(&resolve(&document, described)["description"]);
            assert!(
                text.as_str().is_some_and(|text| !text.is_empty()),
                "{name}.{property}"
            );
            let example = described.get("example").or(described.get("examples"));
            let items = &described["items"];
            let elsewhere = items["$ref"].is_string()
                || described["oneOf"][0]["$ref"].is_string()
                || described["$ref"].is_string();
            let whole = schema["example"].get(property);
            assert!(
                example.or(whole).is_some() || elsewhere,
                "{name}.{property} has no example"
            );
        }
    }
}

/// A default applies to create requests only: an absent field of an update stays.
#[test]
fn update_schemas_state_no_defaults() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let updates = schemas
        .iter()
        .filter(|(name, _)| name.starts_with("Update"));
    let mut fields = 0;
    for (name, schema) in updates {
        for (property, field) in schema["properties"].as_object().unwrap() {
            let description = field["description"].as_str().unwrap_or_default();
            assert!(!description.contains("Default:"), "{name}.{property}");
            fields += 1;
        }
    }
    assert!(fields > 50, "{fields}");
    let create = &schemas["CreateSubscription"]["properties"]["quantity"];
    assert!(
        create["description"]
            .as_str()
            .unwrap()
            .ends_with("Default: 1.")
    );
}

/// Repeated parts are in `components`. The API grows by whole features, so the limit is one per operation. The requests that
/// endpoints receive (`webhooks`) are not operations, and must fit too.
#[test]
fn document_is_small() {
    let document = document();
    let size = document.to_string().len();
    let operations = operations(&document).len();
    assert!(
        size < operations * MAX_BYTES_PER_OPERATION,
        "{size} bytes for {operations} operations"
    );
}

/// Each type of event that clients can receive has a request with the signed headers, and its body has the members of a
/// real request.
#[tokio::test]
async fn webhooks_describe_the_requests_to_endpoints() {
    let document = document();
    let webhooks = &document["webhooks"];
    let public = EventKind::ALL.into_iter().filter(|kind| kind.is_public());
    let types: BTreeSet<String> = public.map(|kind| kind.to_string()).collect();
    assert_eq!(names(webhooks), types);
    for kind in &types {
        let operation = &webhooks[kind]["post"];
        let described = operation["description"].as_str().unwrap();
        assert!(described.ends_with('.'), "{kind}: {described}");
        assert_eq!(operation["security"], serde_json::json!([]), "{kind}");
        let responses: Vec<String> = names(&operation["responses"]).into_iter().collect();
        assert_eq!(responses, ["2XX", "410", "429", "503"], "{kind}");
    }

    let (_service, api) = webhooks::start().await;
    let receiver = WebhookReceiver::start().await;
    webhooks::create_endpoint(&api, &receiver, serde_json::json!({})).await;
    webhooks::create_plan(&api, "pro").await;
    webhooks::wait_for_count(&receiver, 1).await;
    let request = &receiver.received()[0];
    let operation = &webhooks[request.body()["type"].as_str().unwrap()]["post"];
    let headers = operation["parameters"].as_array().unwrap().iter();
    let headers: Vec<&Value> = headers
        .map(|header| &resolve(&document, header)["name"])
        .collect();
    let sent = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    assert_eq!(headers, sent);
    let body = &resolve(&document, &operation["requestBody"])["content"]["application/json"];
    let schema = resolve(&document, &body["schema"]);
    assert_eq!(names(&schema["properties"]), names(&request.body()));
    let event = resolve(&document, &schema["properties"]["data"]);
    let optional = BTreeSet::from(["previous".to_owned()]);
    let members = &names(&request.body()["data"]) | &optional;
    assert_eq!(names(&event["properties"]), members);
    assert_eq!(names(&body["example"]["data"]), members);
}

/// Every problem code, and nothing else.
#[test]
fn problem_code_is_an_enum_of_all_codes() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(schemas["ProblemCode"]["enum"], serde_json::json!(codes));
    for schema in ["Problem", "FieldError"] {
        let code = &schemas[schema]["properties"]["code"];
        assert_eq!(code["$ref"], "#/components/schemas/ProblemCode", "{schema}");
    }
}

#[test]
fn required_plan_fields_are_documented() {
    let document = document();
    let body = &document["paths"]["/subscription-plans"]["post"]["requestBody"]["content"]["application/json"]
        ["schema"];
    let create = names(&resolve(&document, body)["properties"]);
    for field in [
        "name",
        "product_id",
        "variants",
        "slug",
        "price",
        "href",
        "billing_cycle",
        "description",
        "node_quota",
        "features",
        "most_popular",
        "tier",
    ] {
        assert!(create.contains(field), "{field}");
    }
    let body = &document["paths"]["/subscription-plans/{slug}"]["put"]["requestBody"]["content"]["application/json"]
        ["schema"];
    let update = names(&resolve(&document, body)["properties"]);
    for field in [
        "price",
        "billing_cycle",
        "description",
        "node_quota",
        "features",
        "most_popular",
        "tier",
        "is_active",
    ] {
        assert!(update.contains(field), "{field}");
    }
}

/// Returns the fields that a source file reads from the body with these calls.
fn fields_read(file: &str, calls: &[&str]) -> BTreeSet<String> {
    let code = std::fs::read_to_string(crate_path(file)).unwrap();
    let mut names = BTreeSet::new();
    for call in calls {
        for (at, found) in code.match_indices(&format!("fields.{call}(")) {
            let rest = code[at + found.len()..].trim_start();
            names.insert(
                rest.trim_start_matches('"')
                    .split('"')
                    .next()
                    .unwrap()
                    .to_owned(),
            );
        }
    }
    names
}

/// The documented fields are those that the code reads, and the required ones are those that are
/// reported as missing.
#[tokio::test]
async fn documented_body_fields_match_the_code() {
    let document = document();
    let body_of = |path: &str, method: &str| {
        let operation = &document["paths"][path][method];
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        resolve(&document, body)
    };
    // Fields that the service sets are accepted with any value.
    let written = |schema: &Value| {
        let mut written = names(&schema["properties"]);
        written.retain(|name| schema["properties"][name]["$ref"] != "#/components/schemas/Ignored");
        written
    };
    let schema = body_of("/subscription-plans", "post");
    let documented = written(schema);
    let mut read = fields_read(
        "src/subscription_plans/body.rs",
        &["required", "optional", "with_default", "or_default"],
    );
    // Read by `http/metadata_field.rs`, as in other bodies.
    read.insert("metadata".to_owned());
    assert_eq!(read, documented);
    let update = body_of("/subscription-plans/{slug}", "put");
    let mut read = fields_read(
        "src/subscription_plans/body.rs",
        &[
            "or_current",
            "or_current_nullable",
            "immutable",
            "immutable::<PlanId>",
        ],
    );
    read.insert("metadata".to_owned());
    assert_eq!(read, written(update));
    assert!(update["required"].is_null());

    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let nothing = api.post("/subscription-plans", "{}").await;
    let required: BTreeSet<String> = nothing
        .field_errors()
        .iter()
        .map(|error| error[1..].replace(" required", ""))
        .collect();
    let documented_required: BTreeSet<String> = schema["required"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(required, documented_required);
    assert_eq!(schema["additionalProperties"], false);
    // Every field but `metadata`, which is an object.
    for field in documented.iter().filter(|field| *field != "metadata") {
        let response = api
            .post("/subscription-plans", &format!("{{\"{field}\":{{}}}}"))
            .await;
        assert!(
            response
                .field_errors()
                .contains(&format!("/{field} wrong_type")),
            "{field}: {}",
            response.text
        );
    }

    // The example is valid, and the response has the documented fields.
    let created = api
        .post("/subscription-plans", &schema["example"].to_string())
        .await;
    assert_eq!(created.status, 201, "{}", created.text);
    let response = &document["paths"]["/subscription-plans"]["post"]["responses"]["201"]["content"]
        ["application/json"]["schema"];
    let record = resolve(&document, response);
    assert_eq!(names(&created.json()), names(&record["properties"]));
    assert_eq!(
        names(&created.json()),
        record["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    );
    assert_eq!(names(&record["example"]), names(&record["properties"]));
    // Requests accept every field of the response, so that a client can send a record back.
    for schema in [schema, update] {
        assert_eq!(schema["additionalProperties"], false);
        assert!(names(&record["properties"]).is_subset(&names(&schema["properties"])));
    }
}

/// Features add routes with `routes!`, which documents them.
#[test]
fn routes_are_added_only_with_documentation() {
    for path in rust_files(&crate_path("src")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let allowed = [
            "docs_site/mod.rs",
            "docs_site/examples.rs",
            "docs_site/explorer.rs",
            "docs_site/pages.rs",
            "console/web_app.rs",
            "src/admin.rs",
        ]
        .iter()
        .any(|file| path.ends_with(file));
        assert!(allowed || !text.contains(".route("), "{}", path.display());
    }
}
