//! A client that sends exactly the 23 requests of the base API, over TCP: every field always, and
//! `is_active: true` always.
//!
//! Headers: C is `client-id`, B is `Authorization` with a bearer token, X is `x-forwarded-for`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    api::{ApiClient, ApiResponse},
    auth::sandbox_token,
    service::Service,
};

/// Sends a request and asserts its status.
async fn call(
    api: &ApiClient,
    method: &str,
    path: &str,
    body: Option<Value>,
    status: u16,
) -> ApiResponse {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let api = match body {
        Some(_) => api.with("content-type", "application/json"),
        None => api.clone(),
    };
    let body = body.map(|body| body.to_string().into_bytes());
    let response = api.try_send(method.clone(), path, body).await.unwrap();
    assert_eq!(
        response.status, status,
        "{method} {path}: {}",
        response.text
    );
    assert!(!response.header("x-request-id").is_empty());
    assert!(!response.header("api-version").is_empty());
    response
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap()
}

#[tokio::test]
async fn requests_of_the_base_api_succeed() {
    let service = Service::start().await;
    let (_, client_id) = service.create_client(&[]);
    let c = service.anonymous().with("client-id", &client_id);
    let cx = c.with("x-forwarded-for", "203.0.113.7");

    // Authentication
    //
    // POST    /authentication/sign-up                              C, X    access_token, email
    // POST    /authentication/sign-in                              C, X    access_token, email
    // POST    /authentication/user-logged-in                       C, B    none
    // POST    /authentication/refresh-token                        C       refresh_token
    // GET     /authentication/tokens                               C, B    none
    // POST    /authentication/tokens/revoke-all-except-current     C, B    none
    let ada = json!({"access_token": sandbox_token("ada@example.com"), "email": "ada@example.com"});
    call(
        &cx,
        "POST",
        "/authentication/sign-up",
        Some(ada.clone()),
        201,
    )
    .await;
    let tokens = call(
        &cx,
        "POST",
        "/authentication/sign-in",
        Some(ada.clone()),
        200,
    )
    .await
    .json();
    let cb = c.with_bearer(text(&tokens, "access_token"));
    call(&cb, "POST", "/authentication/user-logged-in", None, 200).await;
    let refresh = json!({"refresh_token": tokens["refresh_token"]});
    call(
        &c,
        "POST",
        "/authentication/refresh-token",
        Some(refresh),
        200,
    )
    .await;
    call(&cb, "GET", "/authentication/tokens", None, 200).await;
    let revoked = call(
        &cb,
        "POST",
        "/authentication/tokens/revoke-all-except-current",
        None,
        200,
    )
    .await;
    let one_revoked = json!({"success": true, "revoked": 1});
    assert_eq!(revoked.json(), one_revoked);
    let user = text(&tokens, "auth_id");

    // Subscription plans
    //
    // POST    /subscription-plans            C    plan create fields
    // GET     /subscription-plans            C (Accept: application/json)    none
    // GET     /subscription-plans/{slug}     C    none
    // PUT     /subscription-plans/{slug}     C    plan update fields
    let plan = json!({
        "name": "Pro", "product_id": "prod_1042", "variants": ["var_1", "var_2"], "slug": "pro", "price": 19.99,
        "href": "https://example.com/plans/pro", "billing_cycle": "monthly", "description": "For teams.",
        "node_quota": 25, "features": "SSO, Audit log", "most_popular": true, "tier": 2,
    });
    let plan = call(&c, "POST", "/subscription-plans", Some(plan), 201)
        .await
        .json();
    let json = c.with("accept", "application/json");
    let plans = call(&json, "GET", "/subscription-plans", None, 200)
        .await
        .json();
    assert_eq!(plans["data"], json!([plan]));
    call(&c, "GET", "/subscription-plans/pro", None, 200).await;
    let update = json!({
        "price": 24.99, "billing_cycle": "monthly", "description": "For teams that ship.", "node_quota": 50,
        "features": "SSO, Audit log, Priority support", "most_popular": false, "tier": 3, "is_active": true,
    });
    let plan = call(&c, "PUT", "/subscription-plans/pro", Some(update), 200)
        .await
        .json();

    // Subscriptions
    //
    // POST    /subscriptions         C    subscription fields
    // GET     /subscriptions         C    none
    // GET     /subscriptions/{id}    C    none
    // PUT     /subscriptions/{id}    C    subscription fields
    let with_status = |status: &str, ends_at: &str| {
        json!({
            "user_id": user, "subscription_plan_id": plan["id"], "external_subscription_id": "ext_1",
            "billing_cycle": "monthly", "status": status, "is_active": true,
            "renews_at": "2099-12-31T09:30:00.123Z", "starts_at": "2026-01-31T09:30:00Z", "ends_at": ends_at,
        })
    };
    let later = "2100-01-31T09:30:00.123456Z";
    let fields = with_status("active", later);
    let subscription = call(&c, "POST", "/subscriptions", Some(fields), 201)
        .await
        .json();
    let subscriptions = call(&c, "GET", "/subscriptions", None, 200).await.json();
    assert_eq!(subscriptions["data"], json!([subscription]));
    let subscription_path = format!("/subscriptions/{}", text(&subscription, "id"));
    call(&c, "GET", &subscription_path, None, 200).await;
    for (status, ends_at, has_access) in [
        ("past_due", later, true),
        ("paused", later, false),
        ("active", later, true),
        ("unpaid", later, false),
        ("active", later, true),
        ("cancelled", later, true),
        ("active", later, true),
        ("expired", "2026-02-28T09:30:00Z", false),
        ("active", later, true),
        ("past_due", later, true),
    ] {
        let fields = with_status(status, ends_at);
        let updated = call(&c, "PUT", &subscription_path, Some(fields), 200)
            .await
            .json();
        assert_eq!(
            (text(&updated, "status"), &updated["is_active"]),
            (status, &json!(has_access))
        );
    }
    // The only optional field can be absent.
    let mut fields = with_status("past_due", later);
    fields
        .as_object_mut()
        .unwrap()
        .remove("external_subscription_id");
    call(&c, "PUT", &subscription_path, Some(fields.clone()), 200).await;
    // Without it, no payment provider manages the subscription, and a payment can activate it.
    fields["external_subscription_id"] = json!(null);
    let past_due = call(&c, "PUT", &subscription_path, Some(fields), 200)
        .await
        .json();
    assert_eq!(past_due["price"], json!(24.99));
    // A client can also send back everything that it has read.
    call(&c, "PUT", &subscription_path, Some(past_due), 200).await;

    // Subscription payments
    //
    // POST    /subscription-payments                 C    payment fields
    // GET     /subscription-payments/{payment_id}    C    none
    // PUT     /subscription-payments/{payment_id}    C    payment fields
    // DELETE  /subscription-payments/{payment_id}    C    none
    let with_status = |status: &str| {
        json!({
            "subscription_id": subscription["id"], "amount": 24.99, "currency": "USD", "external_payment_id": "pi_1",
            "status": status,
        })
    };
    let fields = with_status("pending");
    let payment = call(&c, "POST", "/subscription-payments", Some(fields), 201)
        .await
        .json();
    let payment_path = format!("/subscription-payments/{}", text(&payment, "id"));
    call(&c, "GET", &payment_path, None, 200).await;
    for status in ["pending", "failed", "completed", "completed"] {
        let fields = with_status(status);
        call(&c, "PUT", &payment_path, Some(fields), 200).await;
    }
    let completed = call(&c, "GET", &payment_path, None, 200).await.json();
    call(&c, "PUT", &payment_path, Some(completed), 200).await;
    let reactivated = call(&c, "GET", &subscription_path, None, 200).await.json();
    assert_eq!(
        reactivated["status"], "active",
        "a completed payment reactivates it"
    );
    call(&c, "DELETE", &payment_path, None, 409).await;
    let mut another = with_status("pending");
    another["external_payment_id"] = json!("pi_2");
    let another = call(&c, "POST", "/subscription-payments", Some(another), 201)
        .await
        .json();
    let another_path = format!("/subscription-payments/{}", text(&another, "id"));
    call(&c, "DELETE", &another_path, None, 204).await;
    // Payments can be listed per subscription only.
    let none = call(&c, "GET", "/subscription-payments", None, 405).await;
    assert_eq!(none.header("allow"), "POST");
    let paid = call(
        &c,
        "GET",
        &format!("{subscription_path}/payments"),
        None,
        200,
    )
    .await
    .json();
    assert_eq!(paid["data"].as_array().unwrap().len(), 1);

    // Deletions and sign-outs
    //
    // DELETE  /subscription-plans/{slug}                           C       none
    // DELETE  /subscriptions/{id}                                  C       none
    // POST    /authentication/tokens/logout                        C, B    none
    // POST    /authentication/tokens/revoke-all                    C, B    none
    // DELETE  /authentication/delete-my-account/{auth_id}          C, B    none
    let in_use = call(&c, "DELETE", "/subscription-plans/pro", None, 409)
        .await
        .json();
    assert_eq!(
        (text(&in_use, "code"), &in_use["live_subscriptions"]),
        ("plan_in_use", &json!(1))
    );
    call(&c, "DELETE", &subscription_path, None, 204).await;
    call(&c, "DELETE", "/subscription-plans/pro", None, 204).await;
    let revoked = call(&cb, "POST", "/authentication/tokens/logout", None, 200).await;
    assert_eq!(revoked.json(), one_revoked);
    let cb = c.with_bearer(c.sign_in("ada@example.com").await.access());
    let revoked = call(&cb, "POST", "/authentication/tokens/revoke-all", None, 200).await;
    assert_eq!(revoked.json(), one_revoked);
    let cb = c.with_bearer(c.sign_in("ada@example.com").await.access());
    let account = format!("/authentication/delete-my-account/{user}");
    call(&cb, "DELETE", &account, None, 204).await;
}
