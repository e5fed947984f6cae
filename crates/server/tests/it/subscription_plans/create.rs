//! `POST /subscription-plans`

use serde_json::{Map, Value, json};

use super::minimal_plan;
use crate::{
    harness::{api::ApiClient, service::Service},
    malformed_input::target::Target,
};

const PATH: &str = "/subscription-plans";

/// A plan with all fields.
fn full_plan(slug: &str) -> Value {
    json!({
        "name": "Pro",
        "slug": slug,
        "price": 19.99,
        "currency": "eur",
        "billing_cycle": "Annually",
        "product_id": "prod_1",
        "variants": ["var_1", "var_2"],
        "href": "https://example.com/pro?x=1#top",
        "description": "Two\nlines.",
        "node_quota": 25,
        "features": " SSO,, Audit log ,",
        "most_popular": true,
        "tier": 3,
        "trial_days": 14,
        "is_active": false,
        "metadata": {"order": "A-1042"},
    })
}

fn fields(plan: &Value) -> Map<String, Value> {
    plan.as_object().unwrap().clone()
}

#[tokio::test]
async fn plan_with_all_fields_is_stored_and_returned() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let response = api.post(PATH, &full_plan("Pro.2").to_string()).await;
    assert_eq!(response.status, 201, "{}", response.text);
    assert_eq!(response.header("location"), "/subscription-plans/Pro.2");
    assert_eq!(response.header("content-type"), "application/json");
    assert!(!response.header("api-version").is_empty());

    let mut record = fields(&response.json());
    let id = record.remove("id").unwrap();
    assert!(id.as_str().unwrap().starts_with("plan_"), "{id}");
    assert_eq!(id.as_str().unwrap().len(), 37);
    let created: jiff::Timestamp = record["created_at"].as_str().unwrap().parse().unwrap();
    assert!(record["created_at"].as_str().unwrap().ends_with('Z'));
    assert!(
        (jiff::Timestamp::now() - created)
            .total(jiff::Unit::Second)
            .unwrap()
            .abs()
            < 60.0
    );
    assert_eq!(record.remove("created_at"), record.remove("updated_at"));
    let mut expected = fields(&full_plan("Pro.2"));
    expected.insert("currency".to_owned(), json!("EUR"));
    expected.insert("billing_cycle".to_owned(), json!("yearly"));
    expected.insert("feature_list".to_owned(), json!(["SSO", "Audit log"]));
    assert_eq!(record, expected);

    assert_eq!(
        api.get("/subscription-plans/Pro.2").await.text,
        response.text
    );
}

#[tokio::test]
async fn omitted_fields_get_their_defaults() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let record = api
        .post(PATH, &minimal_plan("basic").to_string())
        .await
        .json();
    let defaults = json!({
        "currency": "USD", "product_id": null, "variants": [], "href": null, "description": null,
        "node_quota": 0, "features": null, "feature_list": [], "most_popular": false, "tier": 0, "trial_days": 0,
        "is_active": true,
    });
    for (field, value) in defaults.as_object().unwrap() {
        assert_eq!(&record[field], value, "{field}");
    }

    // The tenant's default currency applies within the cache's TTL of 1 s.
    crate::harness::process::run_ok(
        &service.variables,
        &["tenant", "set", "--default-currency", "kwd"],
    );
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let body = r#"{"name": "K", "slug": "k", "price": 1.5, "billing_cycle": "monthly"}"#;
    let response = api.post(PATH, body).await;
    assert_eq!(response.json()["currency"], "KWD");
    assert!(
        response.text.contains(r#""price":1.500,"#),
        "{}",
        response.text
    );
}

/// Sends a minimal plan with one field replaced by raw JSON, or removed if `raw` is `None`.
async fn post_with(
    api: &ApiClient,
    slug: &str,
    field: &str,
    raw: Option<&str>,
) -> crate::harness::api::ApiResponse {
    let mut parts: Vec<String> = fields(&minimal_plan(slug))
        .into_iter()
        .filter(|(name, _)| name != field)
        .map(|(name, value)| format!("{}:{value}", json!(name)))
        .collect();
    // Raw text, because a JSON library cannot represent the number 1e400.
    parts.extend(raw.map(|raw| format!("{}:{raw}", json!(field))));
    api.post(PATH, &format!("{{{}}}", parts.join(","))).await
}

/// Malformed input: 21, 22, 23.
#[tokio::test]
async fn missing_null_or_mistyped_field_is_rejected() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let required = ["name", "slug", "price", "billing_cycle"];
    let types = [
        ("string", r#""text""#),
        ("number", "1"),
        ("fraction", "1.5"),
        ("boolean", "true"),
        ("array", r#"["a"]"#),
        ("object", r#"{"a":1}"#),
    ];
    let accepts = |field: &str, kind: &str| match field {
        "price" => ["number", "fraction", "string"].contains(&kind),
        "node_quota" | "tier" | "trial_days" => kind == "number",
        "variants" => kind == "array",
        "most_popular" | "is_active" => kind == "boolean",
        "metadata" => kind == "object",
        _ => kind == "string",
    };
    for (number, field) in fields(&full_plan("x")).keys().enumerate() {
        for (case, raw) in [("missing", None), ("null", Some("null"))] {
            let response = post_with(&api, &format!("{case}-{number}"), field, raw).await;
            if required.contains(&field.as_str()) {
                assert_eq!(response.status, 422, "{field} {case}");
                assert_eq!(response.problem(), "required");
                assert_eq!(response.field_errors(), [format!("/{field} required")]);
            } else {
                assert_eq!(response.status, 201, "{field} {case}: {}", response.text);
            }
        }
        for (kind, raw) in types {
            if !accepts(field, kind) {
                let response = post_with(&api, "wrong", field, Some(raw)).await;
                assert_eq!(response.status, 422, "{field} as {kind}: {}", response.text);
                assert_eq!(
                    response.field_errors(),
                    [format!("/{field} wrong_type")],
                    "{field} as {kind}"
                );
            }
        }
    }
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans WHERE slug = 'wrong'")
            .await,
        0
    );
}

/// Malformed input: 24, 30, 31, 42, 49, 51.
#[tokio::test]
async fn field_bounds_are_enforced() {
    let mut target = Target::start_in_process().await;
    let api = target.api.clone();
    let text = |length: usize| json!("é".repeat(length)).to_string();
    let ascii = |length: usize| json!("x".repeat(length)).to_string();
    let link =
        |length: usize| json!(format!("https://a.example/{}", "x".repeat(length - 18))).to_string();
    let list = |items: usize, length: usize| json!(vec!["é".repeat(length); items]).to_string();

    let accepted = [
        ("name", vec![text(1), text(200)]),
        ("slug", vec![ascii(1), ascii(64), r#""0a.B_c-""#.to_owned()]),
        (
            "price",
            [
                "0",
                "-0",
                "0.01",
                "10000000000.00",
                "1e2",
                "19.990",
                r#""19.99""#,
            ]
            .map(str::to_owned)
            .to_vec(),
        ),
        (
            "currency",
            vec![r#""usd""#.to_owned(), r#""JPY""#.to_owned()],
        ),
        (
            "billing_cycle",
            [
                "day",
                "WEEK",
                "quarter",
                "half_yearly",
                "one_time",
                "annual",
            ]
            .map(|word| json!(word).to_string())
            .to_vec(),
        ),
        ("product_id", vec![text(1), text(255)]),
        ("variants", vec!["[]".to_owned(), list(100, 255)]),
        (
            "href",
            vec![link(2_000), r#""http://a.example""#.to_owned()],
        ),
        ("description", vec![text(0), text(5_000)]),
        (
            "node_quota",
            ["-1", "0", "2147483647", "1.0", "1e2"]
                .map(str::to_owned)
                .to_vec(),
        ),
        (
            "features",
            vec![text(0), text(5_000), json!("a,".repeat(2_500)).to_string()],
        ),
        ("tier", vec!["0".to_owned(), "1000".to_owned()]),
    ];
    for (field, values) in accepted {
        for (number, raw) in values.iter().enumerate() {
            let price_in_yen = field == "currency" && raw.contains("JPY");
            let response = if price_in_yen {
                api.post(PATH, r#"{"name":"Y","slug":"yen","price":1999,"currency":"JPY","billing_cycle":"monthly"}"#).await
            } else {
                post_with(&api, &format!("{field}-{number}"), field, Some(raw)).await
            };
            assert_eq!(
                response.status,
                201,
                "{field} {}: {}",
                raw.chars().take(80).collect::<String>(),
                response.text
            );
        }
    }

    let rejected = [
        (
            "name",
            vec![
                (text(201), "too_long"),
                (text(0), "blank"),
                (json!(" \t").to_string(), "invalid_format"),
                (json!("  ").to_string(), "blank"),
                (json!("\u{a0}\u{2003}").to_string(), "blank"),
                (json!("a\0b").to_string(), "invalid_format"),
                (json!("a\nb").to_string(), "invalid_format"),
            ],
        ),
        (
            "slug",
            vec![
                (ascii(65), "too_long"),
                (text(0), "invalid_format"),
                (json!(".a").to_string(), "invalid_format"),
                (json!("a b").to_string(), "invalid_format"),
                (json!("..").to_string(), "invalid_format"),
                (json!("é").to_string(), "invalid_format"),
                (json!("a/b").to_string(), "invalid_format"),
            ],
        ),
        (
            "price",
            [
                "-0.01",
                "10000000000.01",
                "1e400",
                "1E1000000000",
                "12345678901234567.89",
                "-1e-1",
                r#""1e400""#,
            ]
            .map(|raw| (raw.to_owned(), "out_of_range"))
            .to_vec(),
        ),
        (
            "price",
            ["0.005", "1e-400", r#""19.999""#]
                .map(|raw| (raw.to_owned(), "amount_scale_invalid"))
                .to_vec(),
        ),
        (
            "price",
            [
                r#""""#,
                r#""NaN""#,
                r#""1,5""#,
                r#"" 1""#,
                r#""0x10""#,
                r#""007""#,
            ]
            .map(|raw| (raw.to_owned(), "invalid_format"))
            .to_vec(),
        ),
        (
            "currency",
            ["", "US", "XXX", "DOGE"]
                .map(|word| (json!(word).to_string(), "unknown_value"))
                .to_vec(),
        ),
        (
            "billing_cycle",
            ["", "montly", "fortnightly"]
                .map(|word| (json!(word).to_string(), "unknown_value"))
                .to_vec(),
        ),
        (
            "product_id",
            vec![(text(256), "too_long"), (text(0), "blank")],
        ),
        ("variants", vec![(list(101, 1), "too_many")]),
        (
            "href",
            vec![
                (link(2_001), "too_long"),
                (json!("javascript:alert(1)").to_string(), "invalid_format"),
                (
                    json!("https://u:p@a.example/").to_string(),
                    "invalid_format",
                ),
                (json!("").to_string(), "blank"),
            ],
        ),
        (
            "description",
            vec![
                (text(5_001), "too_long"),
                (json!("a\0").to_string(), "invalid_format"),
            ],
        ),
        (
            "node_quota",
            [
                "-2",
                "2147483648",
                "9007199254740993",
                "9223372036854775808",
                "1e400",
                "1e1000000000",
            ]
            .map(|raw| (raw.to_owned(), "out_of_range"))
            .to_vec(),
        ),
        ("features", vec![(text(5_001), "too_long")]),
        (
            "tier",
            ["-1", "1001", "18446744073709551616"]
                .map(|raw| (raw.to_owned(), "out_of_range"))
                .to_vec(),
        ),
    ];
    target.save_state().await;
    for (field, values) in rejected {
        for (raw, code) in values {
            target.assert_rejects_field(field, &raw, code).await;
        }
    }
    let in_list = post_with(&api, "rejected", "variants", Some(r#"["ok", "", 3]"#)).await;
    assert_eq!(
        in_list.field_errors(),
        ["/variants/1 blank", "/variants/2 wrong_type"]
    );
    target.assert_unchanged().await;
}

#[tokio::test]
async fn all_field_errors_are_reported_with_suggestions() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let body = r#"{"nme": "Pro", "slug": "-", "price": 0.005, "billing_cycle": "montly", "tier": -1, "role": 1, "created_at": "x"}"#;
    let response = api.post(PATH, body).await;
    assert_eq!(response.problem(), "validation_failed");
    let mut errors = response.field_errors();
    errors.sort();
    assert_eq!(
        errors,
        [
            "/billing_cycle unknown_value",
            "/name required",
            "/nme unknown_field",
            "/price amount_scale_invalid",
            "/role unknown_field",
            "/slug invalid_format",
            "/tier out_of_range",
        ]
    );
    assert!(response.text.contains(r#"did you mean \"monthly\"?"#));
    assert!(response.text.contains(r#"did you mean \"name\"?"#));
    assert!(response.text.contains(r#""allowed":["daily","#));
}

#[tokio::test]
async fn read_only_fields_are_ignored() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let first = api.post(PATH, &minimal_plan("first").to_string()).await;
    let mut again = fields(&first.json());
    again.insert("slug".to_owned(), json!("second"));
    let second = api.post(PATH, &Value::from(again).to_string()).await;
    assert_eq!(second.status, 201, "{}", second.text);
    assert_ne!(first.json()["id"], second.json()["id"]);
}

#[tokio::test]
async fn duplicate_slug_in_any_case_is_rejected() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    assert_eq!(
        api.post(PATH, &minimal_plan("Pro").to_string())
            .await
            .status,
        201
    );
    let response = api.post(PATH, &minimal_plan("pRO").to_string()).await;
    assert_eq!(response.status, 409);
    assert_eq!(response.problem(), "slug_taken");
    assert_eq!(
        service
            .count("SELECT count(*) FROM subscription_plans")
            .await,
        1
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind = 'plan.created'")
            .await,
        1
    );

    // One of 100 concurrent requests succeeds.
    let racing: Vec<_> = (0..100)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move {
                api.post(PATH, &minimal_plan("race").to_string())
                    .await
                    .status
            })
        })
        .collect();
    let mut statuses = Vec::new();
    for task in racing {
        statuses.push(task.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
    assert!(
        statuses
            .iter()
            .all(|status| [201, 409, 503].contains(status)),
        "{statuses:?}"
    );
}
