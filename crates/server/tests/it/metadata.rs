//! The field `metadata` of plans, users, subscriptions and payments.

use serde_json::{Value, json};

use crate::{
    subscription_plans::minimal_plan,
    subscriptions::{SubscriptionFixture, record_path},
};

/// Returns the path of each kind of record, and the fields of a request that creates one.
async fn records(fixture: &SubscriptionFixture) -> Vec<(&'static str, Value)> {
    let subscription = fixture.subscribe(json!({})).await;
    let payment = json!({"subscription_id": subscription["id"], "amount": 1, "currency": "USD"});
    vec![
        ("/subscription-plans", minimal_plan("other")),
        ("/users", json!({"email": "bob@example.com"})),
        ("/subscriptions", fixture.fields(&json!({}))),
        ("/subscription-payments", payment),
    ]
}

/// Returns the path of a created record.
fn path_of(collection: &str, record: &Value) -> String {
    match collection {
        "/subscription-plans" | "/users" => {
            let key = record.get("slug").unwrap_or(&record["id"]);
            format!("{collection}/{}", key.as_str().unwrap())
        }
        _ => record_path(record),
    }
}

#[tokio::test]
async fn metadata_is_merged_and_null_removes_a_key() {
    let fixture = SubscriptionFixture::start().await;
    for (collection, mut fields) in records(&fixture).await {
        fields["metadata"] = json!({"order": "A-1", "empty": "", "gone": null, "ключ": "línea\n2"});
        let record = fixture.api.create(collection, &fields).await;
        let stored = json!({"order": "A-1", "empty": "", "ключ": "línea\n2"});
        assert_eq!(record["metadata"], stored, "{collection}");
        let path = path_of(collection, &record);
        assert_eq!(fixture.api.get_json(&path).await, record);
        let put = async |metadata: Value| {
            let body = json!({"metadata": metadata}).to_string();
            let response = fixture.api.put(&path, &body).await;
            assert_eq!(response.status, 200, "{path}: {}", response.text);
            response.json()
        };
        assert_eq!(put(stored.clone()).await, record, "nothing changes");
        let merged = put(json!({"order": "A-2", "empty": null, "new": "1"})).await;
        assert_eq!(
            merged["metadata"],
            json!({"order": "A-2", "ключ": "línea\n2", "new": "1"})
        );
        assert_ne!(merged["updated_at"], record["updated_at"], "{path}");
        assert_eq!(put(Value::Null).await["metadata"], json!({}), "{path}");
        assert_eq!(put(json!({})).await["metadata"], json!({}), "{path}");
    }
}

#[tokio::test]
async fn events_of_records_contain_metadata() {
    let fixture = SubscriptionFixture::start().await;
    let created = fixture
        .subscribe(json!({"metadata": {"order": "A-1"}}))
        .await;
    let body = r#"{"metadata": {"order": "A-2"}}"#;
    fixture.api.put(&record_path(&created), body).await;
    let id = created["id"].as_str().unwrap().rsplit('_').next().unwrap();
    let sql = format!("SELECT data::text FROM events WHERE subject_id = '{id}' ORDER BY at");
    let client = fixture.service.database.connect().await;
    let rows = client.query(&sql, &[]).await.unwrap();
    let events: Vec<Value> = rows
        .iter()
        .map(|row| serde_json::from_str(row.get(0)).unwrap())
        .collect();
    let [first, second] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(first["metadata"]["order"], "A-1");
    assert_eq!(first["subscription_plan_slug"], "pro");
    assert_eq!(second["metadata"]["order"], "A-2");
    assert_eq!(second["previous"]["metadata"]["order"], "A-1");
}

#[tokio::test]
async fn invalid_metadata_is_rejected() {
    let fixture = SubscriptionFixture::start().await;
    let many: serde_json::Map<String, Value> =
        (0..51).map(|n| (format!("k{n}"), json!("v"))).collect();
    let (long_key, long_value) = ("k".repeat(41), "v".repeat(501));
    for (collection, fields) in records(&fixture).await {
        for (metadata, error) in [
            (json!("x"), "/metadata wrong_type"),
            (json!(["x"]), "/metadata wrong_type"),
            (json!({"a": 1}), "/metadata/a wrong_type"),
            (json!({"a": {"b": "c"}}), "/metadata/a wrong_type"),
            (json!({"a/b~c": true}), "/metadata/a~1b~0c wrong_type"),
            (json!({"": "x"}), "/metadata/ blank"),
            (json!({"a": "\u{0}"}), "/metadata/a invalid_format"),
            (
                json!({"a": "4242-4242 4242 4242"}),
                "/metadata/a invalid_format",
            ),
            (json!({"a": long_value}), "/metadata/a too_long"),
            (
                json!({&long_key: "x"}),
                &format!("/metadata/{long_key} too_long"),
            ),
            (Value::Object(many.clone()), "/metadata too_many"),
        ] {
            let mut body = fields.clone();
            body["metadata"] = metadata;
            let response = fixture.api.post(collection, &body.to_string()).await;
            assert_eq!(response.status, 422, "{collection}: {}", response.text);
            assert_eq!(response.field_errors(), [error], "{collection}");
        }
        let mut duplicate = fields.to_string();
        duplicate.pop();
        let body = format!(r#"{duplicate}, "metadata": {{"a": "1", "a": "2"}}}}"#);
        let response = fixture.api.post(collection, &body).await;
        assert_eq!(response.field_errors(), ["/metadata wrong_type"]);
    }
    // 50 keys are allowed, and no more in several steps.
    let fifty: serde_json::Map<String, Value> = many.into_iter().take(50).collect();
    let created = fixture.subscribe(json!({"metadata": fifty})).await;
    let path = record_path(&created);
    let one_more = fixture
        .api
        .put(&path, r#"{"metadata": {"new": "1"}}"#)
        .await;
    one_more.assert_problem(422, "too_many");
    let replaced = r#"{"metadata": {"new": "1", "k0": null}}"#;
    assert_eq!(fixture.api.put(&path, replaced).await.status, 200);
}
