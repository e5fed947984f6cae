//! Every endpoint with the ids, cursors, keys and tokens of another tenant, or of another user.

use reqwest::Method;
use serde_json::{Value, json};

use super::{AttackReport, outcome};
use crate::{
    access_policy::routes,
    harness::{
        api::{ApiClient, ApiResponse},
        auth::{SessionTokens, sandbox_token},
        client::every_scope,
        database::Database,
        process::run_ok,
        service::Service,
    },
    malformed_input::target::tenant_state,
    payment_accounts::{TestAccount, subscription_event},
    subscription_plans::minimal_plan,
};

/// The records of one tenant.
struct Records {
    plan: String,
    tokens: SessionTokens,
    subscription: String,
    payment: String,
    endpoint: String,
    provider: String,
    payment_account: TestAccount,
    notification: String,
    /// Signed cursors of the lists of plans and subscriptions.
    cursors: [String; 2],
    /// The idempotency key of a request that created a subscription, and its body.
    idempotent: (String, Value),
}

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

impl Records {
    async fn create(api: &ApiClient, prefix: &str) -> Self {
        let (first, second) = (format!("{prefix}-plan"), format!("{prefix}-plan-2"));
        let plan = id(&api
            .create("/subscription-plans", &minimal_plan(&first))
            .await);
        api.create("/subscription-plans", &minimal_plan(&second))
            .await;
        let tokens = api.sign_up(&format!("{prefix}@example.com")).await;
        let body = json!({"user_id": tokens.user(), "subscription_plan_id": plan});
        let subscription = id(&api.create("/subscriptions", &body).await);
        let key = format!("{prefix}-key");
        let with_key = api.with("idempotency-key", &key);
        with_key.create("/subscriptions", &body).await;
        let payment = json!({"subscription_id": subscription, "amount": 5, "currency": "USD"});
        let payment = id(&api.create("/subscription-payments", &payment).await);
        // No event of this type occurs, so no request is sent.
        let endpoint = json!({"url": "https://1.1.1.1/", "event_types": ["subscription.unpaid"]});
        let endpoint = id(&api.create("/webhook-endpoints", &endpoint).await);
        let provider = json!({"issuer": "https://1.1.1.1", "audiences": [prefix]});
        let provider = id(&api.create("/identity-providers", &provider).await);
        let payment_account = TestAccount::stripe(api, api).await;
        let event = subscription_event("evt_1", "sub_1");
        let notification = payment_account.accept(&event).await;
        let mut cursors = [const { String::new() }; 2];
        for (cursor, list) in cursors
            .iter_mut()
            .zip(["/subscription-plans", "/subscriptions"])
        {
            let page = api.get_json(&format!("{list}?limit=1")).await;
            page["next_cursor"].as_str().unwrap().clone_into(cursor);
        }
        Self {
            plan,
            tokens,
            subscription,
            payment,
            endpoint,
            provider,
            payment_account,
            notification,
            cursors,
            idempotent: (key, body),
        }
    }
}

/// Gives positions to all events, without the sequencer, and returns the id of a record's event.
async fn number_events(database: &Database, record: &str) -> String {
    let client = database.connect().await;
    let number = "INSERT INTO event_log (tenant_id, position, recorded_at, at, event_id, kind, subject_id)
        SELECT tenant_id, row_number() OVER (PARTITION BY tenant_id ORDER BY seq), at, at, id, kind, subject_id FROM events";
    client.batch_execute(number).await.unwrap();
    let (_, digits) = record.split_once('_').unwrap();
    let find = format!("SELECT event_id::text FROM event_log WHERE subject_id = '{digits}'");
    let row = client.query_one(&find, &[]).await.unwrap();
    format!("evt_{}", row.get::<_, String>(0).replace('-', ""))
}

/// Returns whether a list has records, or the problem.
fn list_outcome(response: &ApiResponse) -> String {
    match response.status {
        200 if response.json()["data"] == json!([]) => "200 empty".to_owned(),
        _ => outcome(response),
    }
}

#[tokio::test]
async fn other_tenants_records_cannot_be_read_or_changed() {
    let service = Service::start_in_process().await;
    run_ok(
        &service.variables,
        &["tenant", "create", "--name", "victim"],
    );
    let attacker = service.api(&[vec!["--tenant", "default"], every_scope()].concat());
    let victim = [vec!["--tenant", "victim"], every_scope()].concat();
    let (victim_client, victim_value) = service.create_client(&victim);
    let victim = service.anonymous().with("client-id", &victim_value);
    let ours = Records::create(&attacker, "ours").await;
    let theirs = Records::create(&victim, "theirs").await;
    let their_etag = victim.get("/subscription-plans/theirs-plan").await;
    let their_etag = their_etag.header("etag").to_owned();
    let tenant = theirs.tokens.claims()["aud"].as_str().unwrap().to_owned();
    let invite = [
        "staff",
        "invite",
        "theirs@example.com",
        "--role",
        "viewer",
        "--tenant",
        "victim",
        "--json",
    ];
    let staff = format!("/staff/{}", id(&service.run_json(&invite)));
    let event = number_events(&service.database, &theirs.plan).await;
    assert_eq!(victim.get(&format!("/events/{event}")).await.status, 200);
    let before = tenant_state(&service.database, &tenant).await;
    let mut report = AttackReport::new("Another tenant's records");

    let plan = "/subscription-plans/theirs-plan".to_owned();
    let subscription = format!("/subscriptions/{}", theirs.subscription);
    let payment = format!("/subscription-payments/{}", theirs.payment);
    let endpoint = format!("/webhook-endpoints/{}", theirs.endpoint);
    let user = theirs.tokens.user();
    let update = r#"{"status": "cancelled"}"#;
    let endpoint_calls = [
        ("GET", "", ""),
        ("PUT", "", r#"{"order": "strict"}"#),
        ("DELETE", "", ""),
        ("POST", "/enable", ""),
        ("POST", "/rotate-secret", ""),
        ("POST", "/test", ""),
        ("GET", "/attempts", ""),
        ("POST", "/replays", r#"{"from": "2026-01-01T00:00:00Z"}"#),
    ];
    let endpoint_calls = endpoint_calls.map(|(method, action, body)| {
        let path = format!("{endpoint}{action}");
        (method, path, body, "404 webhook_endpoint_not_found")
    });
    let client = format!("/clients/{victim_client}");
    let client_calls = [
        ("GET", "", ""),
        ("PUT", "", r#"{"name": "ours"}"#),
        ("DELETE", "", ""),
        ("POST", "/rotate", "{}"),
    ];
    let client_calls = client_calls.map(|(method, action, body)| {
        let path = format!("{client}{action}");
        (method, path, body, "404 client_not_found")
    });
    let provider = format!("/identity-providers/{}", theirs.provider);
    let provider_calls = [
        ("GET", "", ""),
        ("PUT", "", r#"{"audiences": ["ours"]}"#),
        ("DELETE", "?end_sessions=true", ""),
    ];
    let provider_calls = provider_calls.map(|(method, query, body)| {
        let path = format!("{provider}{query}");
        (method, path, body, "404 identity_provider_not_found")
    });
    let payment_account = theirs.payment_account.api_path();
    let notification = format!("/payment-notifications/{}", theirs.notification);
    let (no_account, no_notification) = (
        "404 payment_account_not_found",
        "404 payment_notification_not_found",
    );
    let payment_account_calls = [
        ("GET", payment_account.clone(), "", no_account),
        (
            "PUT",
            payment_account.clone(),
            r#"{"description": "ours"}"#,
            no_account,
        ),
        ("DELETE", payment_account.clone(), "", no_account),
        (
            "POST",
            format!("{payment_account}/rotate-secret"),
            r#"{"secret": "whsec_ours"}"#,
            no_account,
        ),
        ("GET", notification.clone(), "", no_notification),
        (
            "POST",
            format!("{notification}/replay"),
            "",
            no_notification,
        ),
        (
            "POST",
            theirs.payment_account.path(),
            "{}",
            "401 invalid_signature",
        ),
    ];
    let calls = [
        (
            "PUT",
            staff.clone(),
            r#"{"role": "admin"}"#,
            "404 staff_member_not_found",
        ),
        ("DELETE", staff, "", "404 staff_member_not_found"),
        (
            "GET",
            "/console/sign-in/theirs".to_owned(),
            "",
            "404 not_found",
        ),
        (
            "GET",
            "/reports/revenue?plan=theirs-plan".to_owned(),
            "",
            "400 invalid_parameter",
        ),
        ("GET", plan.clone(), "", "404 plan_not_found"),
        ("PUT", plan.clone(), r#"{"tier": 9}"#, "404 plan_not_found"),
        ("DELETE", plan.clone(), "", "404 plan_not_found"),
        (
            "GET",
            subscription.clone(),
            "",
            "404 subscription_not_found",
        ),
        (
            "PUT",
            subscription.clone(),
            update,
            "404 subscription_not_found",
        ),
        (
            "DELETE",
            subscription.clone(),
            "",
            "404 subscription_not_found",
        ),
        (
            "POST",
            format!("{subscription}/preview"),
            update,
            "404 subscription_not_found",
        ),
        (
            "GET",
            format!("{subscription}/ledger"),
            "",
            "404 subscription_not_found",
        ),
        (
            "GET",
            format!("{subscription}/payments"),
            "",
            "404 subscription_not_found",
        ),
        ("GET", payment.clone(), "", "404 payment_not_found"),
        (
            "PUT",
            payment.clone(),
            r#"{"status": "completed"}"#,
            "404 payment_not_found",
        ),
        ("DELETE", payment.clone(), "", "404 payment_not_found"),
        ("GET", format!("/events/{event}"), "", "404 event_not_found"),
        ("GET", format!("/users/{user}"), "", "404 user_not_found"),
        (
            "GET",
            format!("/users/{user}/timeline"),
            "",
            "404 user_not_found",
        ),
        (
            "GET",
            format!("/users/{user}/sessions"),
            "",
            "404 user_not_found",
        ),
        (
            "GET",
            format!("/users/{user}/identities"),
            "",
            "404 user_not_found",
        ),
        (
            "POST",
            format!("/users/{user}/export"),
            "",
            "404 user_not_found",
        ),
        (
            "PUT",
            format!("/users/{user}"),
            r#"{"external_user_id": "ours"}"#,
            "404 user_not_found",
        ),
        ("DELETE", format!("/users/{user}"), "", "404 user_not_found"),
        (
            "GET",
            format!("/subscription-plans/{}", theirs.plan),
            "",
            "404 plan_not_found",
        ),
        (
            "GET",
            format!("/entitlements/{user}"),
            "",
            "404 user_not_found",
        ),
        (
            "GET",
            format!("/subscription-plans?cursor={}", theirs.cursors[0]),
            "",
            "400 invalid_cursor",
        ),
        (
            "GET",
            format!("/subscriptions?cursor={}", theirs.cursors[1]),
            "",
            "400 invalid_cursor",
        ),
    ];
    let calls = calls
        .into_iter()
        .chain(endpoint_calls)
        .chain(client_calls)
        .chain(provider_calls);
    let calls: Vec<_> = calls.chain(payment_account_calls).collect();
    let send = async |api: &ApiClient, method: &str, path: &str, body: &str| {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let api = api.with("content-type", "application/json");
        let body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
        api.send(method, path, body).await
    };
    let shorten = |path: &str| match path.split_once("cursor=") {
        Some((list, _)) => format!("{list}cursor=…"),
        None => path.to_owned(),
    };
    for (method, path, body, expected) in &calls {
        let response = send(&attacker, method, path, body).await;
        let attack = format!("{method} {}", shorten(path));
        report.expect(attack, &[expected], &outcome(&response));
    }
    for path in [
        format!("/subscriptions?user_id={user}"),
        format!("/subscriptions?subscription_plan_id={}", theirs.plan),
        "/users?email=theirs@example.com".to_owned(),
        "/users?email_prefix=theirs".to_owned(),
        format!("/users?user_id={user}"),
        format!(
            "/subscriptions/next-steps?subscription_id={}",
            theirs.subscription
        ),
        format!("/payments?user_id={user}"),
        format!("/payments?subscription_id={}", theirs.subscription),
        format!(
            "/payment-notifications?payment_account_id={}",
            theirs.payment_account.id
        ),
    ] {
        let response = attacker.get(&path).await;
        let expected = ["200 empty", "404 user_not_found"];
        report.expect(format!("GET {path}"), &expected, &list_outcome(&response));
    }
    let stale = attacker.with("if-match", &their_etag);
    let response = send(&stale, "DELETE", &plan, "").await;
    report.expect(
        "DELETE with the victim's ETag",
        &["404 plan_not_found"],
        &outcome(&response),
    );

    // References to records of the other tenant in a body.
    let own_user = ours.tokens.user();
    for (attack, path, body) in [
        (
            "POST a subscription for their user",
            "/subscriptions",
            json!({"user_id": user, "subscription_plan_id": ours.plan}),
        ),
        (
            "POST a subscription to their plan",
            "/subscriptions",
            json!({"user_id": own_user, "subscription_plan_id": theirs.plan}),
        ),
        (
            "POST a checkout for their user",
            "/checkouts",
            json!({"user_id": user, "subscription_plan_id": ours.plan, "success_url": "https://example.com/"}),
        ),
        (
            "POST a checkout of their plan",
            "/checkouts",
            json!({"user_id": own_user, "subscription_plan_id": theirs.plan, "success_url": "https://example.com/"}),
        ),
        (
            "POST a checkout at their payment account",
            "/checkouts",
            json!({"user_id": own_user, "subscription_plan_id": ours.plan, "success_url": "https://example.com/",
                "payment_account_id": theirs.payment_account.id}),
        ),
        (
            "POST a portal session of their user",
            "/billing-portal-sessions",
            json!({"user_id": user}),
        ),
        (
            "POST a portal session at their payment account",
            "/billing-portal-sessions",
            json!({"user_id": own_user, "payment_account_id": theirs.payment_account.id}),
        ),
        (
            "POST a payment for their subscription",
            "/subscription-payments",
            json!({"subscription_id": theirs.subscription, "amount": 5, "currency": "USD"}),
        ),
    ] {
        let response = attacker.post(path, &body.to_string()).await;
        report.expect(attack, &["422 unknown_reference"], &outcome(&response));
    }
    let switch = json!({"subscription_plan_id": theirs.plan}).to_string();
    let own = format!("/subscriptions/{}", ours.subscription);
    let response = attacker.put(&own, &switch).await;
    report.expect(
        "PUT an own subscription to their plan",
        &["422 unknown_reference"],
        &outcome(&response),
    );
    let (key, body) = &theirs.idempotent;
    let with_key = attacker.with("idempotency-key", key);
    let response = with_key.post("/subscriptions", &body.to_string()).await;
    report.expect(
        "POST with their idempotency key and body",
        &["422 unknown_reference"],
        &outcome(&response),
    );

    // Their tokens with a client of this tenant.
    let bearer = attacker.with_bearer(theirs.tokens.access());
    let account = format!("/authentication/delete-my-account/{user}");
    for (method, path) in [
        ("POST", "/authentication/user-logged-in"),
        ("GET", "/authentication/tokens"),
        ("POST", "/authentication/tokens/logout"),
        ("POST", "/authentication/tokens/revoke-all"),
        ("POST", "/authentication/tokens/revoke-all-except-current"),
        ("GET", "/entitlements"),
        ("GET", &*own),
        ("DELETE", &*account),
    ] {
        let response = send(&bearer, method, path, "").await;
        let attack = format!("{method} {path} with their access token");
        report.expect(attack, &["401 invalid_token"], &outcome(&response));
    }
    let response = attacker.refresh(theirs.tokens.refresh()).await;
    report.expect(
        "their refresh token",
        &["401 invalid_grant", "401 invalid_token"],
        &outcome(&response),
    );
    let own_token = attacker.with_bearer(ours.tokens.access());
    let response = own_token.delete(&account).await;
    report.expect(
        "DELETE their account with an own token",
        &["403 not_your_account"],
        &outcome(&response),
    );
    let session = format!("/authentication/tokens/{}", theirs.tokens.session());
    let response = own_token.delete(&session).await;
    report.expect(
        "DELETE their session with an own token",
        &["404 session_not_found"],
        &outcome(&response),
    );
    let token = sandbox_token("theirs@example.com");
    let response = attacker
        .authenticate("sign-in", &token, "theirs@example.com")
        .await;
    report.expect(
        "sign-in as their user",
        &["404 account_not_found"],
        &outcome(&response),
    );
    let by_id = service.anonymous().with("client-id", &victim_client);
    let response = by_id.get(&plan).await;
    report.expect(
        "their client's id as client-id",
        &["401 invalid_client"],
        &outcome(&response),
    );
    let both = attacker.with("client-id", &victim_value);
    let response = both.get(&plan).await;
    report.expect(
        "both tenants' client ids",
        &["401 invalid_client"],
        &outcome(&response),
    );

    // Each route that names a record in its path was attacked.
    let deletions = [("DELETE", account.as_str()), ("DELETE", session.as_str())];
    let requests = calls
        .iter()
        .map(|(method, path, ..)| (*method, path.as_str()));
    let requests: Vec<_> = requests.chain(deletions).collect();
    for route in routes().iter().filter(|route| route.contains('{')) {
        let is_match = |(method, path): &(&str, &str)| {
            let path = path.split('?').next().unwrap_or_default();
            let call = format!("{method} {path}");
            let (call, template) = (call.split('/'), route.split('/'));
            call.clone().count() == template.clone().count()
                && call
                    .zip(template)
                    .all(|(value, part)| value == part || part.starts_with('{'))
        };
        assert!(requests.iter().any(is_match), "{route} was not attacked");
    }
    report.finish(72);
    assert_eq!(tenant_state(&service.database, &tenant).await, before);
}

#[tokio::test]
async fn other_users_records_cannot_be_read_with_a_publishable_client() {
    let service = Service::start_in_process().await;
    let server = service.api(&every_scope());
    let page = service.api(&["--kind", "publishable"]);
    let ours = server.sign_up("ours@example.com").await;
    let theirs = Records::create(&server, "theirs").await;
    let user = page.with_bearer(ours.access());
    let subscription = format!("/subscriptions/{}", theirs.subscription);
    let mut report = AttackReport::new("Another user's records");
    for (path, expected) in [
        (subscription.clone(), "404 subscription_not_found"),
        (
            format!("{subscription}/ledger"),
            "404 subscription_not_found",
        ),
        (
            format!("{subscription}/payments"),
            "404 subscription_not_found",
        ),
        (
            format!("/subscription-payments/{}", theirs.payment),
            "404 payment_not_found",
        ),
        (
            format!("/subscriptions?user_id={}", theirs.tokens.user()),
            "200 empty",
        ),
        (
            format!("/subscriptions?cursor={}", theirs.cursors[1]),
            "400 invalid_cursor",
        ),
        (
            format!("/users/{}", theirs.tokens.user()),
            "403 insufficient_scope",
        ),
        (
            format!("/users/{}/timeline", theirs.tokens.user()),
            "403 insufficient_scope",
        ),
        (
            "/users?email=theirs@example.com".to_owned(),
            "403 insufficient_scope",
        ),
        (
            format!("/entitlements/{}", theirs.tokens.user()),
            "403 insufficient_scope",
        ),
    ] {
        let response = user.get(&path).await;
        let shown = path.split("cursor=").next().unwrap();
        report.expect(
            format!("GET {shown}"),
            &[expected],
            &list_outcome(&response),
        );
    }
    let account = format!("/authentication/delete-my-account/{}", theirs.tokens.user());
    let response = user.delete(&account).await;
    report.expect(
        "DELETE their account",
        &["403 not_your_account"],
        &outcome(&response),
    );
    let session = format!("/authentication/tokens/{}", theirs.tokens.session());
    let response = user.delete(&session).await;
    report.expect(
        "DELETE their session",
        &["404 session_not_found"],
        &outcome(&response),
    );
    assert_eq!(server.check(theirs.tokens.access()).await.status, 200);
    report.finish(12);
}
