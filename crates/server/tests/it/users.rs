//! `/users`: the list, updates, deletion, and the client's own ids of users.

use serde_json::{Value, json};

use crate::{
    harness::{
        auth::{SessionTokens, sandbox_token},
        service::Service,
    },
    subscription_plans::minimal_plan,
    subscriptions::create_plan,
};

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn user_with_external_id_is_referred_to_by_it() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, &minimal_plan("pro")).await;
    let user = api
        .create("/users", &json!({"external_user_id": "customer-1042"}))
        .await;
    assert_eq!(user["external_user_id"], "customer-1042");
    assert_eq!(user["email"], Value::Null);
    assert_eq!(user["metadata"], json!({}));
    assert_eq!(user["updated_at"], user["created_at"]);
    let fields = json!({"external_user_id": "customer-1042", "subscription_plan_slug": "PRO"});
    let subscription = api.create("/subscriptions", &fields).await;
    assert_eq!(subscription["user_id"], user["id"]);
    assert_eq!(subscription["external_user_id"], "customer-1042");
    assert_eq!(subscription["subscription_plan_id"], plan);
    assert_eq!(subscription["subscription_plan_slug"], "pro");
    for path in ["/subscriptions", "/users", "/payments"] {
        let list = api
            .get_json(&format!("{path}?external_user_id=customer-1042,other"))
            .await;
        let count = list["data"].as_array().unwrap().len();
        assert_eq!(count, usize::from(path != "/payments"), "{path}");
        let none = api
            .get_json(&format!("{path}?external_user_id=other"))
            .await;
        assert_eq!(none["data"], json!([]), "{path}");
    }
    let access = api
        .get_json("/entitlements?external_user_id=customer-1042")
        .await;
    assert_eq!(
        (&access["user_id"], &access["active"]),
        (&user["id"], &json!(true))
    );
    let unknown = api.get("/entitlements?external_user_id=other").await;
    unknown.assert_problem(404, "user_not_found");
    api.get("/entitlements")
        .await
        .assert_problem(400, "invalid_parameter");
}

#[tokio::test]
async fn signed_in_user_reads_only_own_entitlements_by_external_id() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let tokens = api.sign_up("ada@example.com").await;
    let bob = api
        .create("/users", &json!({"external_user_id": "bob"}))
        .await;
    let user = format!("/users/{}", tokens.user());
    assert_eq!(
        api.put(&user, r#"{"external_user_id": "ada"}"#)
            .await
            .status,
        200
    );
    let as_ada = api.with_bearer(tokens.access());
    for (query, status) in [
        ("", 200),
        ("?external_user_id=ada", 200),
        ("?external_user_id=bob", 404),
    ] {
        let response = as_ada.get(&format!("/entitlements{query}")).await;
        assert_eq!(response.status, status, "{query}: {}", response.text);
    }
    let checked = as_ada.post("/authentication/user-logged-in", "{}").await;
    assert_eq!(checked.json()["user"]["external_user_id"], "ada");
    for (ids, listed) in [
        (tokens.user().to_owned(), 1),
        (format!("{},{}", tokens.user(), id(&bob)), 1),
        (id(&bob), 0),
    ] {
        let page = as_ada.get_json(&format!("/users?user_id={ids}")).await;
        assert_eq!(page["data"].as_array().unwrap().len(), listed, "{ids}");
    }
}

#[tokio::test]
async fn user_needs_an_email_address_or_an_external_id() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let response = api.post("/users", r#"{"metadata": {"a": "1"}}"#).await;
    response.assert_problem(422, "required");
    assert_eq!(response.field_errors(), ["/email required"]);
    let user = api
        .create("/users", &json!({"email": "ada@example.com"}))
        .await;
    let path = format!("/users/{}", id(&user));
    api.put(&path, r#"{"email": null}"#)
        .await
        .assert_problem(422, "required");
    let changed = api
        .put(&path, r#"{"email": null, "external_user_id": "ada"}"#)
        .await;
    assert_eq!(
        (changed.status, &changed.json()["email"]),
        (200, &Value::Null)
    );
    let card = api
        .post("/users", r#"{"external_user_id": "4242424242424242"}"#)
        .await;
    card.assert_problem(422, "invalid_format");
}

#[tokio::test]
async fn user_update_changes_sent_fields_only() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let fields = json!({"email": "ada@example.com", "external_user_id": "a", "metadata": {"x": "1", "y": "2"}});
    let user = api.create("/users", &fields).await;
    let path = format!("/users/{}", id(&user));
    let tag = api.get(&path).await.header("etag").to_owned();
    let unchanged = api.put(&path, &user.to_string()).await;
    assert_eq!(unchanged.json(), user, "what GET shows changes nothing");
    let body = r#"{"metadata": {"x": null, "z": "3"}}"#;
    let changed = api.with("if-match", &tag).put(&path, body).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let changed = changed.json();
    assert_eq!(changed["metadata"], json!({"y": "2", "z": "3"}));
    assert_eq!(changed["email"], "ada@example.com");
    assert!(changed["updated_at"].as_str() > user["updated_at"].as_str());
    assert_eq!(api.get_json(&path).await, changed);
    api.with("if-match", &tag)
        .put(&path, body)
        .await
        .assert_problem(412, "precondition_failed");
    let other = json!({"id": "usr_01920000000070008000000000000001"});
    api.put(&path, &other.to_string())
        .await
        .assert_problem(422, "immutable_field");
    // The event has the names of the changed fields and no values.
    let sql = "SELECT data::text FROM events WHERE kind = 'user.updated'";
    let rows = service
        .database
        .connect()
        .await
        .query(sql, &[])
        .await
        .unwrap();
    let events: Vec<Value> = rows
        .iter()
        .map(|row| serde_json::from_str(row.get(0)).unwrap())
        .collect();
    let expected = json!({"id": user["id"], "external_user_id": "a", "changed": ["metadata"]});
    assert_eq!(events, [expected]);
}

#[tokio::test]
async fn duplicate_email_or_external_id_is_rejected() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let ada = json!({"email": "ada@example.com", "external_user_id": "ada"});
    let ada = api.create("/users", &ada).await;
    let bob = json!({"email": "bob@example.com", "external_user_id": "bob"});
    let bob = api.create("/users", &bob).await;
    let path = format!("/users/{}", id(&bob));
    let same_id = r#"{"external_user_id": "ada"}"#;
    for response in [
        api.post("/users", same_id).await,
        api.put(&path, same_id).await,
    ] {
        response.assert_problem(409, "duplicate_external_id");
        assert_eq!(response.json()["existing_id"], ada["id"]);
    }
    let same_email = r#"{"email": "ADA@example.com", "external_user_id": "new"}"#;
    for response in [
        api.post("/users", same_email).await,
        api.put(&path, same_email).await,
    ] {
        response.assert_problem(409, "email_in_use");
    }
    assert_eq!(api.get_json(&path).await, bob, "nothing was changed");
}

#[tokio::test]
async fn user_list_is_filtered_sorted_and_paginated() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let mut all = Vec::new();
    for (email, external_id) in [
        (Some("bob@example.com"), None),
        (Some("Ada@example.com"), Some("1")),
        (None, Some("2")),
        (Some("adam@example.org"), Some("3")),
        (Some("zoe@example.com"), None),
    ] {
        let fields = json!({"email": email, "external_user_id": external_id});
        all.push(api.create("/users", &fields).await);
    }
    let erased = api
        .create("/users", &json!({"email": "adb@example.com"}))
        .await;
    assert_eq!(
        api.delete(&format!("/users/{}", id(&erased))).await.status,
        204
    );
    let pick = |numbers: &[usize]| numbers.iter().map(|n| id(&all[*n])).collect::<Vec<_>>();
    let third = all[2]["created_at"].as_str().unwrap();
    for (query, expected) in [
        ("", &[0, 1, 2, 3, 4][..]),
        ("sort=-created_at", &[4, 3, 2, 1, 0]),
        ("sort=email", &[1, 3, 0, 4]),
        ("email=ADA@example.com", &[1]),
        ("email=none@example.com", &[]),
        ("email_prefix=AD", &[1, 3]),
        ("email_prefix=ada@", &[1]),
        ("email_prefix=adb", &[]),
        ("email_prefix=ad&sort=email&external_user_id=3", &[3]),
        ("external_user_id=3,1,9", &[1, 3]),
        ("external_user_id=3,1&sort=-created_at", &[3, 1]),
        (&format!("user_id={},{}", id(&all[3]), id(&all[2])), &[2, 3]),
        (&format!("user_id={}&email_prefix=z", id(&all[4])), &[4]),
        (&format!("user_id={}&email_prefix=z", id(&all[3])), &[]),
        (&format!("user_id={}", id(&erased)), &[]),
        (&format!("created_at[gte]={third}"), &[2, 3, 4]),
        (&format!("created_at[lt]={third}"), &[0, 1]),
        (&format!("created_at[gt]={third}&email_prefix=a"), &[3]),
        (
            &format!("created_at[gt]={third}&external_user_id=2,3"),
            &[3],
        ),
    ] {
        for limit in [1, 2, 50] {
            assert_eq!(
                api.list_ids("/users", query, limit).await,
                pick(expected),
                "{query}"
            );
        }
    }
    for query in [
        "email_prefix=a&sort=created_at",
        "user_id=ada",
        "email_prefix=",
        "email=nonsense",
        "sort=updated_at",
        "name=ada",
    ] {
        let response = api.get(&format!("/users?{query}")).await;
        response.assert_problem(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn deleted_user_is_erased() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, &minimal_plan("pro")).await;
    let tokens = api.sign_up("ada@example.com").await;
    let path = format!("/users/{}", tokens.user());
    let body = r#"{"external_user_id": "ada", "metadata": {"name": "Ada"}}"#;
    assert_eq!(api.put(&path, body).await.status, 200);
    let fields = json!({"user_id": tokens.user(), "subscription_plan_id": plan});
    let subscription = api.create("/subscriptions", &fields).await;
    assert_eq!(subscription["external_user_id"], "ada");
    api.with("if-match", "\"other\"")
        .delete(&path)
        .await
        .assert_problem(412, "precondition_failed");
    assert_eq!(api.delete(&path).await.status, 204);
    api.get(&path).await.assert_problem(404, "user_not_found");
    api.put(&path, "{}")
        .await
        .assert_problem(404, "user_not_found");
    api.delete(&path)
        .await
        .assert_problem(404, "user_not_found");
    let session = api.with_bearer(tokens.access());
    session
        .post("/authentication/user-logged-in", "{}")
        .await
        .assert_problem(401, "invalid_token");
    let ended = api
        .get_json(&format!("/subscriptions/{}", id(&subscription)))
        .await;
    assert_eq!(ended["status"], "expired");
    assert_eq!(ended["external_user_id"], Value::Null);
    let client = service.database.connect().await;
    let sql = "SELECT (SELECT count(*) FROM users WHERE email LIKE '%ada%' OR email_key LIKE '%ada%'
                   OR external_id IS NOT NULL OR metadata <> '{}') + (SELECT count(*) FROM identities)";
    let left: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    // The address and the id are free again.
    let again = json!({"email": "ada@example.com", "external_user_id": "ada"});
    api.create("/users", &again).await;
}

#[tokio::test]
async fn sign_up_returns_the_location_of_the_user() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let token = sandbox_token("ada@example.com");
    let response = api.authenticate("sign-up", &token, "ada@example.com").await;
    let tokens = SessionTokens::from_response(&response);
    let location = response.header("location").to_owned();
    assert_eq!(location, format!("/users/{}", tokens.user()));
    assert_eq!(api.get_json(&location).await["email"], "ada@example.com");
}

#[tokio::test]
async fn sessions_and_identities_of_a_user_are_listed() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let first = api
        .with("user-agent", "Ada's phone")
        .sign_up("ada@example.com")
        .await;
    let second = api.sign_in("ada@example.com").await;
    api.sign_up("eve@example.com").await;
    let path = format!("/users/{}", first.user());
    let sessions = api.get_json(&format!("{path}/sessions")).await;
    let ids: Vec<String> = { sessions["data"].as_array().unwrap().iter() }
        .map(id)
        .collect();
    let session_id = |tokens: &SessionTokens| tokens.claims()["sid"].as_str().unwrap().to_owned();
    assert_eq!(ids, [session_id(&second), session_id(&first)]);
    let device = &sessions["data"][1];
    assert_eq!(device["user_agent"], "Ada's phone");
    assert_eq!(device["current"], false);
    assert!(device["last_used_at"].is_string());

    let identities = api.get_json(&format!("{path}/identities")).await;
    let [identity] = identities["data"].as_array().unwrap().as_slice() else {
        panic!("{identities}");
    };
    assert_eq!(identity["issuer"], device["issuer"]);
    assert!(identity["subject"].is_string());
    // An ended session is not listed, and a user that was created ahead of time has no identity.
    let logout = api.with_bearer(second.access());
    assert_eq!(
        logout
            .post("/authentication/tokens/logout", "")
            .await
            .status,
        200
    );
    let sessions = api.get_json(&format!("{path}/sessions")).await;
    assert_eq!(sessions["data"].as_array().unwrap().len(), 1);
    let ahead = api
        .create("/users", &json!({"email": "bob@example.com"}))
        .await;
    for list in ["sessions", "identities"] {
        let path = format!("/users/{}/{list}", id(&ahead));
        assert_eq!(api.get_json(&path).await, json!({"data": []}));
    }
}

#[tokio::test]
async fn export_is_what_the_command_prints() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, &minimal_plan("pro")).await;
    let user = api.sign_up("ada@example.com").await;
    let body = json!({"user_id": user.user(), "subscription_plan_id": plan});
    let subscription = api.create("/subscriptions", &body).await;
    let payment = json!({"subscription_id": subscription["id"], "amount": 10, "currency": "USD"});
    api.create("/subscription-payments", &payment).await;
    let path = format!("/users/{}/export", user.user());
    let exported = api.post(&path, "").await;
    assert_eq!(exported.status, 200, "{}", exported.text);
    // Amounts keep their decimals.
    assert!(
        exported.text.contains(r#""amount":10.00"#),
        "{}",
        exported.text
    );
    let exported = exported.json();
    let printed = service.run_json(&["user", "export", "ada@example.com"]);
    assert_eq!(exported, printed);
    assert_eq!(exported["user"]["email"], "ada@example.com");
    for list in ["identities", "sessions", "subscriptions", "payments"] {
        assert_eq!(exported[list].as_array().unwrap().len(), 1, "{list}");
    }
    assert!(exported["events"].as_array().unwrap().len() >= 4);
    // All scopes are needed.
    let part = service.api(&[
        "--scope",
        "users:read",
        "--scope",
        "subscriptions:read",
        "--scope",
        "payments:read",
    ]);
    part.post(&path, "")
        .await
        .assert_problem(403, "insufficient_scope");
}
