//! The OpenAPI document is valid, complete and consistent with the router and the code.

use std::{collections::BTreeSet, process::Command, sync::Arc};

use perennial::{
    app::App,
    clock::Clock,
    config::{Config, EnvReader},
    crypto::DerivedKeys,
    http::problem::Code,
    router,
};
use perennial_domain::BillingCycle;
use reqwest::Method;
use serde_json::Value;

use crate::{
    architecture::{crate_path, rust_files},
    harness::{
        process::{Variables, run_ok},
        service::Service,
    },
    subscription_plans::minimal_plan,
};

/// Whether a path is a documentation page, which the document does not describe.
fn is_page(path: &str) -> bool {
    path == "/openapi.json" || path == "/docs" || path.starts_with("/docs/")
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

/// Follows a schema's reference, if it has one.
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

#[test]
fn document_matches_snapshot() {
    insta::assert_json_snapshot!(document());
}

/// Reads the router's paths from axum's `Debug` output.
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
        router::router(&app, &router::openapi(&app.public_url)).unwrap()
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
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
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
                assert_eq!(response.status, 405, "{method} {path}");
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
        let described: BTreeSet<String> = listed
            .iter()
            .filter(|p| p["in"] == "path")
            .map(|p| p["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(in_path, described, "{place}");
        for parameter in &listed {
            // A cursor is signed, so that no example would work.
            let has_example = parameter.get("example").is_some() || parameter["name"] == "cursor";
            assert!(
                parameter["description"].is_string() && has_example,
                "{place}: {parameter}"
            );
        }
        // These have no body.
        let without_body =
            path == "/authentication/user-logged-in" || path.starts_with("/authentication/tokens/");
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
        for (status, response) in operation["responses"].as_object().unwrap() {
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
        for (property, described) in schema["properties"].as_object().unwrap() {
            assert!(
                described["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{name}.{property}"
            );
            let example = described.get("example").or(described.get("examples"));
            let items = &described["items"];
            let elsewhere = items["$ref"].is_string()
                || items["properties"].is_object()
                || described["$ref"].is_string();
            assert!(
                example.is_some() || elsewhere,
                "{name}.{property} has no example"
            );
        }
    }
}

#[test]
fn billing_cycle_filter_lists_all_values() {
    let document = document();
    let parameters = document["paths"]["/subscription-plans"]["get"]["parameters"].clone();
    let parameters = parameters.as_array().unwrap().clone();
    let filter = parameters
        .iter()
        .find(|p| p["name"] == "billing_cycle")
        .unwrap();
    let own = BillingCycle::ALL.map(BillingCycle::as_str);
    let aliases = BillingCycle::ALIASES.map(|(word, _)| word);
    let words = [&own[..], &aliases].concat().join("|");
    let pattern = format!("^({words})(,({words})){{0,99}}$");
    assert_eq!(filter["schema"]["pattern"], pattern);
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
    let schema = body_of("/subscription-plans", "post");
    let documented = names(&schema["properties"]);
    let read = fields_read(
        "src/subscription_plans/body.rs",
        &["required", "optional", "with_default", "or_default"],
    );
    assert_eq!(read, documented);
    let update = body_of("/subscription-plans/{slug}", "put");
    let read = fields_read(
        "src/subscription_plans/body.rs",
        &["or_current", "or_current_nullable"],
    );
    assert_eq!(read, names(&update["properties"]));
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
    for field in &documented {
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
}

/// Features add routes with `routes!`, which documents them.
#[test]
fn routes_are_added_only_with_documentation() {
    for path in rust_files(&crate_path("src")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let allowed = [
            "docs_site/mod.rs",
            "docs_site/explorer.rs",
            "docs_site/pages.rs",
            "src/admin.rs",
        ]
        .iter()
        .any(|file| path.ends_with(file));
        assert!(allowed || !text.contains(".route("), "{}", path.display());
    }
}

#[tokio::test]
async fn api_explorer_is_served_by_the_binary() {
    let service = Service::start().await;
    let anonymous = service.anonymous();
    let served: Value = anonymous.get("/openapi.json").await.json();
    assert_eq!(served["servers"][0]["url"], service.server.url);
    assert_eq!(anonymous.get("/docs").await.header("location"), "/docs/");
    let page = anonymous.get("/docs/").await;
    assert_eq!(page.status, 200);
    for part in [
        "<title>API explorer · Perennial</title>",
        "name=\"viewport\"",
        "href=\"/docs/contents\"",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
    let assets: Vec<&str> = page
        .text
        .split(['"', '\''])
        .filter(|word| word.ends_with(".js") || word.ends_with(".css"))
        .collect();
    assert_eq!(assets.len(), 4);
    for asset in assets {
        assert!(!asset.contains("//"), "{asset} is loaded from another host");
        let response = anonymous
            .get(&format!("/docs/{}", asset.trim_start_matches("./")))
            .await;
        assert_eq!(response.status, 200, "{asset}");
    }
    for code in Code::ALL {
        let page = anonymous
            .get(&format!("/docs/errors/{}", code.as_str()))
            .await;
        assert_eq!(page.status, 200);
        assert!(
            page.text.contains(code.title()) && !page.text.contains("http"),
            "{}",
            page.text
        );
    }
    assert_eq!(anonymous.get("/docs/errors").await.status, 200);
    // A problem's `type` is the URL of its page.
    let problem = anonymous
        .post("/subscription-plans", &minimal_plan("x").to_string())
        .await;
    let link = problem.json()["type"].as_str().unwrap().to_owned();
    let path = link.strip_prefix(&service.server.url).unwrap();
    assert_eq!(anonymous.get(path).await.status, 200);
}
