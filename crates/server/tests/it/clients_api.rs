//! The API of clients: API keys are shown once, and no client gets more access than its creator.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    commands::live,
    harness::{
        api::ApiClient,
        database::Database,
        process::{Server, run_ok},
        service::{InProcessService, InstancePair},
        wait_until,
    },
};

const MANAGER: &[&str] = &[
    "--scope",
    "clients:read",
    "--scope",
    "clients:write",
    "--scope",
    "plans:read",
];

fn path(client: &Value) -> String {
    format!("/clients/{}", client["id"].as_str().unwrap())
}

/// Creates a client and returns it with its API key.
async fn create(api: &ApiClient, body: &Value) -> (Value, String) {
    let created = api.post("/clients", &body.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let mut client = created.json();
    assert_eq!(created.header("location"), path(&client));
    let key = client.as_object_mut().unwrap().remove("client_id").unwrap();
    (client, key.as_str().unwrap().to_owned())
}

#[tokio::test]
async fn client_is_created_read_updated_rotated_and_disabled() {
    let service = InProcessService::start_in_process().await;
    let (manager_id, key) = service.create_client(MANAGER);
    let api = service.anonymous().with("client-id", &key);
    let body = json!({"name": "Backend", "scopes": ["plans:read"], "allow_addresses": ["127.0.0.1", "::1/128"]});
    let (client, key) = create(&api, &body).await;
    assert!(key.starts_with("prn_sk_"), "{key}");
    assert_eq!(
        client["allow_addresses"],
        json!(["127.0.0.1/32", "::1/128"])
    );
    assert_eq!(
        (
            &client["kind"],
            &client["live_values"],
            &client["disabled_at"]
        ),
        (&json!("secret"), &json!(1), &Value::Null)
    );
    let read = api.get(&path(&client)).await;
    assert_eq!(read.json(), client);
    assert!(!read.text.contains(&key));

    // What GET returns can be sent back.
    let same = api.put(&path(&client), &read.text).await;
    assert_eq!(same.json(), client);
    let change = json!({"name": "Billing", "allow_addresses": []});
    let stale = api.with("if-match", "\"x\"");
    stale
        .put(&path(&client), &change.to_string())
        .await
        .assert_problem(412, "precondition_failed");
    let changed = api.put(&path(&client), &change.to_string()).await.json();
    assert_eq!(
        (
            &changed["name"],
            &changed["scopes"],
            &changed["allow_addresses"]
        ),
        (&json!("Billing"), &json!(["plans:read"]), &json!([]))
    );

    // Both keys work during the grace period, and a second rotation ends the older one.
    let plans = async |key: &str| {
        let api = service.anonymous().with("client-id", key);
        api.get("/subscription-plans").await.status
    };
    let rotate = async |body: Value| {
        let rotated = api
            .post(&(path(&client) + "/rotate"), &body.to_string())
            .await;
        assert_eq!(rotated.header("cache-control"), "no-store");
        rotated.json()["client_id"].as_str().unwrap().to_owned()
    };
    let second = rotate(json!({})).await;
    assert_eq!((plans(&key).await, plans(&second).await), (200, 200));
    assert_eq!(api.get_json(&path(&client)).await["live_values"], 2);
    let third = rotate(json!({"grace_period_seconds": 0})).await;
    wait_until("old keys end", Duration::from_secs(5), async || {
        plans(&key).await == 401 && plans(&second).await == 401
    })
    .await;
    assert_eq!(plans(&third).await, 200);

    let list = api.get_json("/clients?sort=-created_at&limit=1").await;
    assert_eq!(list["data"][0]["id"], client["id"]);
    let cursor = list["next_cursor"].as_str().unwrap();
    let rest = format!("/clients?sort=-created_at&limit=1&cursor={cursor}");
    let rest = api.get_json(&rest).await;
    assert_eq!(rest["data"][0]["id"], json!(manager_id));

    assert_eq!(api.delete(&path(&client)).await.status, 204);
    wait_until(
        "the client is disabled",
        Duration::from_secs(5),
        async || plans(&third).await == 401,
    )
    .await;
    for response in [
        api.put(&path(&client), "{}").await,
        api.post(&(path(&client) + "/rotate"), "{}").await,
        api.delete(&path(&client)).await,
    ] {
        response.assert_problem(409, "client_disabled");
    }
    let disabled = api.get_json(&path(&client)).await;
    assert!(disabled["disabled_at"].is_string());

    // Each change has an event with the caller, and none has a key.
    let events = format!(
        "SELECT string_agg(kind, ' ' ORDER BY seq), string_agg(data::text, ' '), bool_and(client_id = '{}' AND request_id IS NOT NULL)
         FROM events WHERE subject_id = '{}'",
        uuid(&manager_id),
        uuid(client["id"].as_str().unwrap())
    );
    let connection = service.database.connect().await;
    let row = connection.query_one(&events, &[]).await.unwrap();
    let expected = "client.created client.updated client.rotated client.rotated client.disabled";
    assert_eq!(row.get::<_, &str>(0), expected);
    assert!(!row.get::<_, &str>(1).contains("prn_sk_"));
    assert!(row.get::<_, bool>(2));
}

fn uuid(id: &str) -> &str {
    id.split_once('_').unwrap().1
}

#[tokio::test]
async fn client_cannot_give_scopes_that_it_does_not_have() {
    let service = InProcessService::start_in_process().await;
    let (own, key) = service.create_client(MANAGER);
    let api = service.anonymous().with("client-id", &key);
    let (stronger, _) = service.create_client(&["--scope", "payments:write"]);
    let (weaker, _) = service.create_client(&["--scope", "plans:read"]);
    let grant = json!({"name": "x", "scopes": ["plans:read", "payments:write"]}).to_string();
    let created = api.post("/clients", &grant).await;
    created.assert_problem(403, "insufficient_scope");
    assert!(created.text.contains("payments:write"), "{}", created.text);
    for id in [&weaker, &own] {
        let scopes = r#"{"scopes": ["payments:write"]}"#;
        let given = api.put(&format!("/clients/{id}"), scopes).await;
        given.assert_problem(403, "insufficient_scope");
    }
    // A new key of a client with more scopes would give them to the caller.
    let stronger = format!("/clients/{stronger}");
    for response in [
        api.post(&format!("{stronger}/rotate"), "{}").await,
        api.put(&stronger, r#"{"name": "x"}"#).await,
        api.put(&stronger, r#"{"scopes": ["plans:read"]}"#).await,
    ] {
        response.assert_problem(403, "insufficient_scope");
    }
    let recorded = "SELECT count(*) FROM events WHERE client_id IS NOT NULL";
    assert_eq!(service.count(recorded).await, 0);

    // Without a list, a client gets the default scopes that the caller has.
    let (client, _) = create(&api, &json!({"name": "x"})).await;
    assert_eq!(client["scopes"], json!(["plans:read"]));
    let refused = api.delete(&format!("/clients/{own}")).await;
    refused.assert_problem(409, "own_client");
    assert_eq!(api.delete(&stronger).await.status, 204);
}

#[tokio::test]
async fn default_scopes_do_not_include_those_of_clients() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(&[]);
    for response in [
        api.get("/clients").await,
        api.post("/clients", r#"{"name": "x"}"#).await,
    ] {
        response.assert_problem(403, "insufficient_scope");
    }
}

#[tokio::test]
async fn invalid_settings_are_reported_by_field() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(MANAGER);
    for (body, pointer, code) in [
        (json!({}), "/name", "required"),
        (
            json!({"name": "x", "kind": "Secret"}),
            "/kind",
            "invalid_format",
        ),
        (
            json!({"name": "x", "scopes": ["plans:reed"]}),
            "/scopes/0",
            "unknown_value",
        ),
        (
            json!({"name": "x", "kind": "publishable", "scopes": ["clients:read"]}),
            "/scopes",
            "unknown_value",
        ),
        (
            json!({"name": "x", "allow_addresses": ["10.0.0.0/8", "10.0.0.0/33"]}),
            "/allow_addresses/1",
            "invalid_format",
        ),
        (
            json!({"name": "x", "allow_addresses": vec!["10.0.0.0/8"; 101]}),
            "/allow_addresses",
            "too_many",
        ),
        (
            json!({"name": "x", "kind": "publishable", "allowed_origins": ["https://a.example/x"]}),
            "/allowed_origins/0",
            "invalid_format",
        ),
        (
            json!({"name": "x", "allowed_origins": ["https://a.example"]}),
            "/allowed_origins",
            "invalid_format",
        ),
        (
            json!({"name": "x", "client_id": "DEMO"}),
            "/client_id",
            "unknown_field",
        ),
    ] {
        let refused = api.post("/clients", &body.to_string()).await;
        refused.assert_problem(422, code);
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{body}");
    }
    let (client, _) = create(&api, &json!({"name": "x"})).await;
    for (body, code) in [
        (r#"{"kind": "publishable"}"#, "immutable_field"),
        (r#"{"name": null}"#, "required"),
    ] {
        let refused = api.put(&path(&client), body).await;
        refused.assert_problem(422, code);
    }
    let rotate = path(&client) + "/rotate";
    for seconds in ["-1", "2592001", "1.5"] {
        let body = format!(r#"{{"grace_period_seconds": {seconds}}}"#);
        assert_eq!(api.post(&rotate, &body).await.status, 422, "{body}");
    }
    api.get("/clients/cli_01920000000070008000000000000001")
        .await
        .assert_problem(404, "client_not_found");
}

#[tokio::test]
async fn replayed_response_has_no_key() {
    let service = InProcessService::start_in_process().await;
    let api = service.api(MANAGER).with("idempotency-key", "once");
    let body = r#"{"name": "x"}"#;
    let first = api.post("/clients", body).await.json();
    let replayed = api.post("/clients", body).await;
    assert_eq!(
        (replayed.status, replayed.header("idempotency-replayed")),
        (201, "true")
    );
    let mut expected = first.clone();
    expected["client_id"] = Value::Null;
    assert_eq!(replayed.json(), expected);
    let key = first["client_id"].as_str().unwrap();
    let stored = format!("SELECT count(*) FROM idempotency_keys WHERE body LIKE '%{key}%'");
    assert_eq!(service.count(&stored).await, 0);
    assert_eq!(service.count("SELECT count(*) FROM clients").await, 2);
}

#[tokio::test]
async fn disabled_client_is_rejected_by_all_instances_within_a_second() {
    let instances = InstancePair::start(MANAGER).await;
    let (client, key) = create(&instances.here, &json!({"name": "x"})).await;
    let there = ApiClient::new(&instances.other_server.url).with("client-id", &key);
    assert_eq!(there.get("/subscription-plans").await.status, 200);
    assert_eq!(instances.here.delete(&path(&client)).await.status, 204);
    wait_until("the key is rejected", Duration::from_secs(1), async || {
        there.get("/subscription-plans").await.status == 401
    })
    .await;
}

/// In live mode, a key that an operator chose must stay limited to addresses, also for clients of the API.
#[tokio::test]
async fn chosen_key_cannot_be_opened_by_the_api() {
    let database = Database::empty().await;
    let variables = live(&database.url);
    let create = [
        "client",
        "create",
        "--id",
        "DEMO",
        "--allow-address",
        "127.0.0.0/8",
        "--scope",
        "clients:write",
        "--json",
    ];
    let created: Value = serde_json::from_str(&run_ok(&variables, &create)).unwrap();
    let server = Server::start(&variables).await;
    let api = ApiClient::new(&server.url).with("client-id", "DEMO");
    let path = path(&created);
    let refused = api.put(&path, r#"{"allow_addresses": []}"#).await;
    refused.assert_problem(422, "invalid_format");
    assert_eq!(api.put(&path, r#"{"name": "x"}"#).await.status, 200);
}
