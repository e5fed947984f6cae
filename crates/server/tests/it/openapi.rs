//! The OpenAPI document is valid, complete and true: derived from the router, checked both ways.

use std::{collections::BTreeSet, process::Command, sync::Arc};

use perennial::{
    app::App,
    clock::Clock,
    config::{Config, Reader},
    http::problem::Code,
    router,
};
use perennial_domain::BillingCycle;
use reqwest::Method;
use serde_json::Value;

use crate::{
    architecture::{rust_files, source},
    harness::{
        process::{Variables, run_ok},
        service::Service,
    },
    subscription_plans::minimal,
};

/// Pages for people, which the document does not describe.
fn is_a_page(path: &str) -> bool {
    path == "/openapi.json" || path == "/docs" || path.starts_with("/docs/")
}

fn document() -> Value {
    serde_json::from_str(&run_ok(&Variables::new(), &["openapi"])).unwrap()
}

/// Every operation as (path, method, operation).
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((path.clone(), method.to_uppercase(), operation.clone()));
        }
    }
    all
}

/// A schema, by following its reference.
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
fn it_is_valid_openapi_3_1() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let file = std::env::temp_dir().join(format!("perennial-openapi-{}.json", std::process::id()));
    std::fs::write(&file, document.to_string()).unwrap();
    let validator = source("../../.tools/venv/bin/openapi-spec-validator");
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
fn the_document_is_as_reviewed() {
    insta::assert_json_snapshot!(document());
}

/// The router's own list of paths, as axum prints it.
#[tokio::test]
async fn every_route_is_documented_and_every_documented_route_is_there() {
    let variables = [
        ("DATABASE_URL", "postgres://127.0.0.1:1/x"),
        ("PERENNIAL_MODE", "sandbox"),
        ("PERENNIAL_MASTER_KEY", crate::harness::process::MASTER_KEY),
    ];
    let mut reader =
        Reader::new(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let config = Config::read(&mut reader).unwrap();
    let app = Arc::new(
        App::new(
            &config,
            &config
                .keys
                .master(perennial::randomness::Randomness)
                .unwrap(),
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
        .filter(|path| !is_a_page(path))
        .collect();
    assert_eq!(routed, names(&document()["paths"]));
}

/// Each documented method is there; each other one is refused with exactly the documented ones.
#[tokio::test]
async fn methods_both_ways() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let document = document();
    for path in names(&document["paths"]) {
        let documented = names(&document["paths"][&path]);
        let concrete = path
            .replace("{slug}", "none")
            .replace("{id}", "none")
            .replace("{auth_id}", "none");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = caller
                .try_send(
                    Method::from_bytes(method.as_bytes()).unwrap(),
                    &concrete,
                    None,
                )
                .await
                .unwrap();
            if documented.contains(&method.to_lowercase()) {
                assert_ne!(answer.status, 405, "{method} {path}");
            } else {
                assert_eq!(answer.status, 405, "{method} {path}");
                let allowed: BTreeSet<String> = answer
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
fn everything_is_described() {
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
        // Parameters, derived from the path.
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
            // A cursor is signed for one list of one tenant: no example would work.
            let shown = parameter.get("example").is_some() || parameter["name"] == "cursor";
            assert!(
                parameter["description"].is_string() && shown,
                "{place}: {parameter}"
            );
        }
        // The interface shows these without a body.
        let without =
            path == "/authentication/user-logged-in" || path.starts_with("/authentication/tokens/");
        let has_body = ["POST", "PUT"].contains(&method.as_str()) && !without;
        assert!(
            !has_body || operation["requestBody"]["required"] == true,
            "{place} has no body"
        );
        let open = operation["security"] == serde_json::json!([{}]);
        let always = ["500", "503", "401", "403"];
        for status in always.into_iter().take(if open { 2 } else { 4 }) {
            assert!(
                operation["responses"][status].is_object(),
                "{place} does not say {status}"
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

/// The filter by billing cycle takes the words that a billing cycle has.
#[test]
fn the_filters_words_are_the_fields() {
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

/// The fields that the customer's document lays down are all there.
#[test]
fn the_interfaces_fields_are_there() {
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

/// The fields that a source file takes out of the body by these calls.
fn fields_read(file: &str, calls: &[&str]) -> BTreeSet<String> {
    let code = std::fs::read_to_string(source(file)).unwrap();
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

/// The body's fields in the document are those that the code reads, and those that the service
/// knows; the required ones are those whose absence it reports.
#[tokio::test]
async fn body_fields_both_ways() {
    let document = document();
    let body_of = |path: &str, method: &str| {
        let operation = &document["paths"][path][method];
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        resolve(&document, body)
    };
    let schema = body_of("/subscription-plans", "post");
    let documented = names(&schema["properties"]);
    let read = fields_read(
        "src/subscription_plans/create.rs",
        &["required", "optional", "or", "or_default"],
    );
    assert_eq!(read, documented);
    let update = body_of("/subscription-plans/{slug}", "put");
    let read = fields_read(
        "src/subscription_plans/update.rs",
        &["amend", "amend_optional"],
    );
    assert_eq!(read, names(&update["properties"]));
    assert!(update["required"].is_null());

    let service = Service::start().await;
    let caller = service.caller(&[]);
    let nothing = caller.post("/subscription-plans", "{}").await;
    let required: BTreeSet<String> = nothing
        .field_errors()
        .iter()
        .map(|error| error[1..].replace(" required", ""))
        .collect();
    let said: BTreeSet<String> = schema["required"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(required, said);
    assert_eq!(schema["additionalProperties"], false);
    for field in &documented {
        let answer = caller
            .post("/subscription-plans", &format!("{{\"{field}\":{{}}}}"))
            .await;
        assert!(
            answer
                .field_errors()
                .contains(&format!("/{field} wrong_type")),
            "{field}: {}",
            answer.text
        );
    }

    // The example in the document is one that works, and the answer has the documented fields.
    let made = caller
        .post("/subscription-plans", &schema["example"].to_string())
        .await;
    assert_eq!(made.status, 201, "{}", made.text);
    let answer = &document["paths"]["/subscription-plans"]["post"]["responses"]["201"]["content"]["application/json"]
        ["schema"];
    let record = resolve(&document, answer);
    assert_eq!(names(&made.json()), names(&record["properties"]));
    assert_eq!(
        names(&made.json()),
        record["required"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    );
    assert_eq!(names(&record["example"]), names(&record["properties"]));
}

/// Only features and the reference add routes, and features only by `routes!`, which documents them.
#[test]
fn nobody_adds_a_route_in_passing() {
    for path in rust_files(&source("src")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let allowed = [
            "http/reference.rs",
            "http/explorer.rs",
            "http/pages.rs",
            "src/admin.rs",
        ]
        .iter()
        .any(|file| path.ends_with(file));
        assert!(allowed || !text.contains(".route("), "{}", path.display());
    }
}

#[tokio::test]
async fn the_reference_is_served_from_the_binary() {
    let service = Service::start().await;
    let anonymous = service.anonymous();
    let served: Value = anonymous.get("/openapi.json").await.json();
    assert_eq!(served["servers"][0]["url"], service.server.url);
    assert_eq!(anonymous.get("/docs").await.header("location"), "/docs/");
    let page = anonymous.get("/docs/").await;
    assert_eq!(page.status, 200);
    for ours in [
        "<title>Interface · Perennial</title>",
        "name=\"viewport\"",
        "href=\"/docs/contents\"",
    ] {
        assert!(page.text.contains(ours), "{ours}: {}", page.text);
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
        assert!(!asset.contains("//"), "{asset} is loaded from elsewhere");
        let answer = anonymous
            .get(&format!("/docs/{}", asset.trim_start_matches("./")))
            .await;
        assert_eq!(answer.status, 200, "{asset}");
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
    // A problem's type leads to its page.
    let problem = anonymous
        .post("/subscription-plans", &minimal("x").to_string())
        .await;
    let link = problem.json()["type"].as_str().unwrap().to_owned();
    assert_eq!(reqwest::get(link).await.unwrap().status(), 200);
}
