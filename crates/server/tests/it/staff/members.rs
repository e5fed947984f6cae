//! `GET /staff`, `POST /staff`, `PUT /staff/{id}` and `DELETE /staff/{id}`.

use serde_json::json;

use super::*;

fn invitation(email: &str, role: &str) -> String {
    json!({"email": email, "role": role}).to_string()
}

#[tokio::test]
async fn admin_invites_changes_and_removes_a_member() {
    let service = Service::start_in_process().await;
    let admin = sign_in(&service, &["--email", "admin@example.com"]).await;
    let invited = admin
        .post("/staff", &invitation("bob@example.com", "viewer"))
        .await;
    assert_eq!(invited.status, 201, "{}", invited.text);
    let member = invited.json();
    let path = format!("/staff/{}", member["id"].as_str().unwrap());
    assert_eq!(invited.header("location"), path);
    assert_eq!(member["last_signed_in_at"], Value::Null);
    assert_eq!(member["all_tenants"], false);

    let api = service.anonymous();
    let signed_in = use_link(&api, &secret_of(&member)).await;
    assert_eq!(signed_in.json()["staff_member"]["email"], "bob@example.com");
    let bob = with_cookie(&api, &cookie_value(&signed_in));
    bob.get("/staff")
        .await
        .assert_problem(403, "insufficient_scope");

    let changed = admin.put(&path, r#"{"role": "finance"}"#).await;
    assert_eq!(changed.json()["role"], "finance", "{}", changed.text);
    let listed = admin.get_json("/staff").await;
    let members = listed["data"].as_array().unwrap();
    assert_eq!(members.len(), 2);
    assert_eq!(members[0]["email"], "admin@example.com");
    assert_eq!(members[0]["all_tenants"], true);
    assert_eq!(members[1]["role"], "finance");
    assert_ne!(members[1]["last_signed_in_at"], Value::Null);
    // A listed member can be sent back.
    let same = admin.put(&path, &members[1].to_string()).await;
    assert_eq!(same.json(), members[1]);

    assert_eq!(admin.delete(&path).await.status, 204);
    admin
        .delete(&path)
        .await
        .assert_problem(404, "staff_member_not_found");
    assert_eq!(
        admin.get_json("/staff").await["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // The address can be invited again, as another member.
    let again = admin
        .create(
            "/staff",
            &json!({"email": "BOB@example.com", "role": "viewer"}),
        )
        .await;
    assert_ne!(again["id"], member["id"]);
}

#[tokio::test]
async fn member_without_sign_in_is_invited_again() {
    let service = Service::start_in_process().await;
    let admin = sign_in(&service, &[]).await;
    let first = admin
        .create(
            "/staff",
            &json!({"email": "bob@example.com", "role": "viewer"}),
        )
        .await;
    let second = admin
        .create(
            "/staff",
            &json!({"email": "bob@example.com", "role": "admin"}),
        )
        .await;
    assert_eq!(
        (&first["id"], &second["role"]),
        (&second["id"], &json!("admin"))
    );
    assert_eq!(
        use_link(&service.anonymous(), &secret_of(&second))
            .await
            .status,
        201
    );
    let third = admin
        .post("/staff", &invitation("bob@example.com", "viewer"))
        .await;
    third.assert_problem(409, "email_in_use");
}

#[tokio::test]
async fn link_of_an_invitation_is_not_stored() {
    let service = Service::start_in_process().await;
    let admin = sign_in(&service, &[]).await.with("idempotency-key", "k");
    let body = invitation("bob@example.com", "viewer");
    let first = admin.post("/staff", &body).await.json();
    let retry = admin.post("/staff", &body).await;
    assert_eq!(retry.header("idempotency-replayed"), "true");
    assert_eq!(retry.json()["link"], Value::Null);
    assert_eq!(retry.json()["id"], first["id"]);
    let secret = secret_of(&first);
    let database = service.database.connect().await;
    let stored = "SELECT body FROM idempotency_keys";
    let body: String = database.query_one(stored, &[]).await.unwrap().get(0);
    assert!(!body.contains(&secret), "{body}");
}

#[tokio::test]
async fn members_cannot_change_themselves_or_members_of_all_tenants() {
    let service = Service::start_in_process().await;
    sign_in(&service, &["--email", "all@example.com"]).await;
    let arguments = ["--email", "ada@example.com", "--tenant", "default"];
    let ada = sign_in(&service, &arguments).await;
    let listed = ada.get_json("/staff").await;
    for member in listed["data"].as_array().unwrap() {
        let path = format!("/staff/{}", member["id"].as_str().unwrap());
        let response = ada.put(&path, r#"{"role": "viewer"}"#).await;
        response.assert_problem(409, "staff_change_not_allowed");
        let response = ada.delete(&path).await;
        response.assert_problem(409, "staff_change_not_allowed");
    }
    assert_eq!(ada.get_json("/staff").await, listed);
}

#[tokio::test]
async fn members_of_another_tenant_are_not_found() {
    let service = Service::start_in_process().await;
    service.run_json(&["tenant", "create", "--name", "other", "--json"]);
    let ours = sign_in(&service, &["--tenant", "default"]).await;
    let theirs = sign_in(&service, &["--tenant", "other"]).await;
    let created = theirs
        .create(
            "/staff",
            &json!({"email": "bob@example.com", "role": "viewer"}),
        )
        .await;
    let path = format!("/staff/{}", created["id"].as_str().unwrap());
    let response = ours.put(&path, r#"{"role": "admin"}"#).await;
    response.assert_problem(404, "staff_member_not_found");
    ours.delete(&path)
        .await
        .assert_problem(404, "staff_member_not_found");
    assert!(!ours.get("/staff").await.text.contains("bob@example.com"));
    // The same person can be a member of both.
    ours.create(
        "/staff",
        &json!({"email": "bob@example.com", "role": "viewer"}),
    )
    .await;
}

#[tokio::test]
async fn client_with_the_scope_manages_staff() {
    let service = Service::start_in_process().await;
    let client = service.api(&["--scope", "staff:read", "--scope", "staff:write"]);
    let created = client
        .create(
            "/staff",
            &json!({"email": "bob@example.com", "role": "viewer"}),
        )
        .await;
    let path = format!("/staff/{}", created["id"].as_str().unwrap());
    assert_eq!(client.delete(&path).await.status, 204);
    let default = service.api(&[]);
    default
        .get("/staff")
        .await
        .assert_problem(403, "insufficient_scope");
}

#[tokio::test]
async fn invalid_fields_are_rejected() {
    let service = Service::start_in_process().await;
    let admin = sign_in(&service, &[]).await;
    let response = admin
        .post(
            "/staff",
            r#"{"email": "x", "role": "owner", "name": "Bob"}"#,
        )
        .await;
    let errors = response.field_errors();
    assert_eq!(
        errors,
        [
            "/email invalid_format",
            "/role unknown_value",
            "/name unknown_field"
        ]
    );
    let response = admin.post("/staff", "{}").await;
    assert_eq!(
        response.field_errors(),
        ["/email required", "/role required"]
    );
}
