//! Access policy: every route with every kind of client and user, as one table. A route without a row
//! fails, and so does a row without a route.

use std::collections::BTreeSet;

use perennial_domain::{ClientKind, Scope, StaffRole};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    harness::{
        api::ApiClient,
        client::every_scope,
        process::{Variables, run_ok},
        service::Service,
    },
    subscription_plans::minimal_plan,
};

/// What a route requires.
struct Row {
    route: &'static str,
    scope: Scope,
    publishable: bool,
    user: BearerPolicy,
}

/// How a route treats a user's bearer token.
#[derive(PartialEq)]
enum BearerPolicy {
    Ignored,
    /// Optional; restricts the response to the user's own records.
    Narrows,
    /// Required for publishable clients; restricts the response like `Narrows`.
    OrServer,
    Required,
    /// Required for publishable clients; rejected for secret ones.
    SelfService,
    Refused,
}

/// Routes that require a further scope.
const ADDITIONAL_SCOPES: &[(&str, Scope)] = &[
    ("GET /users/{id}/timeline", Scope::SubscriptionsRead),
    ("POST /users/{id}/export", Scope::SubscriptionsRead),
    ("POST /users/{id}/export", Scope::PaymentsRead),
    ("POST /users/{id}/export", Scope::EventsRead),
];

/// Routes that of all staff members only admins can call.
const ADMIN_ONLY: &[&str] = &["DELETE /users/{id}"];

/// Routes without authentication.
const OPEN: &[&str] = &[
    "GET /console/sign-in",
    "GET /.well-known/jwks.json",
    "GET /.well-known/openid-configuration",
];

/// Routes of the sign-in to the console, for which no client makes a difference.
const CONSOLE: &[&str] = &[
    "POST /console/session",
    "GET /console/session",
    "PUT /console/session",
    "DELETE /console/session",
    "GET /console/sign-in/{provider}",
    "GET /console/callback",
];

/// Routes whose requests have a signature instead of a client.
const SIGNED: &[&str] = &["POST /payment-notifications/{id}"];

const TABLE: &[Row] = &[
    Row {
        route: "POST /authentication/sign-in",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Ignored,
    },
    Row {
        route: "POST /authentication/sign-up",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Ignored,
    },
    Row {
        route: "POST /authentication/user-logged-in",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Required,
    },
    Row {
        route: "POST /authentication/refresh-token",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Ignored,
    },
    Row {
        route: "DELETE /authentication/delete-my-account/{auth_id}",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Required,
    },
    Row {
        route: "GET /authentication/tokens",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Required,
    },
    Row {
        route: "DELETE /authentication/tokens/{id}",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Required,
    },
    Row {
        route: "POST /authentication/tokens/logout",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Required,
    },
    Row {
        route: "POST /authentication/tokens/revoke-all",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Required,
    },
    Row {
        route: "POST /authentication/tokens/revoke-all-except-current",
        scope: Scope::Auth,
        publishable: true,
        user: BearerPolicy::Required,
    },
    Row {
        route: "GET /subscription-plans",
        scope: Scope::PlansRead,
        publishable: true,
        user: BearerPolicy::Narrows,
    },
    Row {
        route: "POST /subscription-plans",
        scope: Scope::PlansWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /subscription-plans/{slug}",
        scope: Scope::PlansRead,
        publishable: true,
        user: BearerPolicy::Narrows,
    },
    Row {
        route: "PUT /subscription-plans/{slug}",
        scope: Scope::PlansWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /subscription-plans/{slug}",
        scope: Scope::PlansWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /subscriptions",
        scope: Scope::SubscriptionsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "POST /subscriptions",
        scope: Scope::SubscriptionsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /subscriptions/next-steps",
        scope: Scope::SubscriptionsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /subscriptions/counts",
        scope: Scope::SubscriptionsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /subscriptions/{id}",
        scope: Scope::SubscriptionsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "PUT /subscriptions/{id}",
        scope: Scope::SubscriptionsWrite,
        publishable: true,
        user: BearerPolicy::SelfService,
    },
    Row {
        route: "DELETE /subscriptions/{id}",
        scope: Scope::SubscriptionsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /subscriptions/{id}/preview",
        scope: Scope::SubscriptionsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "GET /subscriptions/{id}/ledger",
        scope: Scope::PaymentsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "GET /subscriptions/{id}/payments",
        scope: Scope::PaymentsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "GET /payments",
        scope: Scope::PaymentsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "GET /subscription-payments/{payment_id}",
        scope: Scope::PaymentsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "POST /subscription-payments",
        scope: Scope::PaymentsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /subscription-payments/{payment_id}",
        scope: Scope::PaymentsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /subscription-payments/{payment_id}",
        scope: Scope::PaymentsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /entitlements",
        scope: Scope::SubscriptionsRead,
        publishable: true,
        user: BearerPolicy::OrServer,
    },
    Row {
        route: "GET /entitlements/{user_id}",
        scope: Scope::SubscriptionsRead,
        publishable: false,
        user: BearerPolicy::Narrows,
    },
    Row {
        route: "GET /events",
        scope: Scope::EventsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /events/{id}",
        scope: Scope::EventsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /users",
        scope: Scope::UsersRead,
        publishable: false,
        user: BearerPolicy::Narrows,
    },
    Row {
        route: "POST /users",
        scope: Scope::UsersWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /users/{id}",
        scope: Scope::UsersRead,
        publishable: false,
        user: BearerPolicy::Narrows,
    },
    Row {
        route: "GET /users/{id}/timeline",
        scope: Scope::UsersRead,
        publishable: false,
        user: BearerPolicy::Narrows,
    },
    Row {
        route: "GET /users/{id}/sessions",
        scope: Scope::UsersRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /users/{id}/identities",
        scope: Scope::UsersRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /users/{id}/export",
        scope: Scope::UsersRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /users/{id}",
        scope: Scope::UsersWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /users/{id}",
        scope: Scope::UsersWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /webhook-endpoints",
        scope: Scope::WebhooksRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /webhook-endpoints",
        scope: Scope::WebhooksWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /webhook-endpoints/{id}",
        scope: Scope::WebhooksRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /webhook-endpoints/{id}",
        scope: Scope::WebhooksWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /webhook-endpoints/{id}",
        scope: Scope::WebhooksWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /webhook-endpoints/{id}/enable",
        scope: Scope::WebhooksWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /webhook-endpoints/{id}/rotate-secret",
        scope: Scope::WebhooksWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /webhook-endpoints/{id}/test",
        scope: Scope::WebhooksWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /webhook-endpoints/{id}/attempts",
        scope: Scope::WebhooksRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /webhook-endpoints/{id}/replays",
        scope: Scope::WebhooksWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /checkouts",
        scope: Scope::SubscriptionsWrite,
        publishable: true,
        user: BearerPolicy::SelfService,
    },
    Row {
        route: "POST /billing-portal-sessions",
        scope: Scope::SubscriptionsWrite,
        publishable: true,
        user: BearerPolicy::SelfService,
    },
    Row {
        route: "GET /reports/revenue",
        scope: Scope::ReportsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /reports/churn",
        scope: Scope::ReportsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /reports/trials",
        scope: Scope::ReportsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /reports/cohorts",
        scope: Scope::ReportsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /reports/changes",
        scope: Scope::ReportsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /reports/payments",
        scope: Scope::ReportsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /payment-accounts",
        scope: Scope::PaymentAccountsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /payment-accounts",
        scope: Scope::PaymentAccountsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /payment-accounts/{id}",
        scope: Scope::PaymentAccountsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /payment-accounts/{id}",
        scope: Scope::PaymentAccountsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /payment-accounts/{id}",
        scope: Scope::PaymentAccountsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /payment-accounts/{id}/rotate-secret",
        scope: Scope::PaymentAccountsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /payment-notifications",
        scope: Scope::PaymentAccountsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /payment-notifications/{id}",
        scope: Scope::PaymentAccountsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /payment-notifications/{id}/replay",
        scope: Scope::PaymentAccountsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /staff",
        scope: Scope::StaffRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /staff",
        scope: Scope::StaffWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /staff/{id}",
        scope: Scope::StaffWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /staff/{id}",
        scope: Scope::StaffWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /clients",
        scope: Scope::ClientsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /clients",
        scope: Scope::ClientsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /clients/{id}",
        scope: Scope::ClientsRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /clients/{id}",
        scope: Scope::ClientsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /clients/{id}",
        scope: Scope::ClientsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /clients/{id}/rotate",
        scope: Scope::ClientsWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /health",
        scope: Scope::HealthRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /sandbox/clock",
        scope: Scope::SandboxWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /sandbox/clock",
        scope: Scope::SandboxWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /sandbox/demo-data",
        scope: Scope::SandboxWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /identity-providers",
        scope: Scope::IdentityProvidersRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "POST /identity-providers",
        scope: Scope::IdentityProvidersWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "GET /identity-providers/{id}",
        scope: Scope::IdentityProvidersRead,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "PUT /identity-providers/{id}",
        scope: Scope::IdentityProvidersWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
    Row {
        route: "DELETE /identity-providers/{id}",
        scope: Scope::IdentityProvidersWrite,
        publishable: false,
        user: BearerPolicy::Refused,
    },
];

/// Returns all routes of the OpenAPI document.
pub fn routes() -> BTreeSet<String> {
    let document: Value = serde_json::from_str(&run_ok(&Variables::new(), &["openapi"])).unwrap();
    let mut routes = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            routes.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    routes
}

#[test]
fn every_route_is_in_the_table() {
    let rows = TABLE
        .iter()
        .map(|row| row.route)
        .chain(OPEN.iter().copied())
        .chain(CONSOLE.iter().copied())
        .chain(SIGNED.iter().copied());
    let rows: BTreeSet<String> = rows.map(str::to_owned).collect();
    assert_eq!(rows, routes());
}

/// Records of another tenant.
struct OtherTenant {
    /// The fields of a request that creates a subscription.
    subscription: String,
    payment: String,
    subscription_path: String,
    payment_path: String,
}

impl OtherTenant {
    async fn create(owner: &ApiClient) -> Self {
        let text = |value: &Value| value["id"].as_str().unwrap().to_owned();
        let user = owner.sign_up("user@example.com").await.user().to_owned();
        let plan = owner.get("/subscription-plans/theirs").await.json();
        let subscription = json!({"user_id": user, "subscription_plan_id": plan["id"]}).to_string();
        let created = owner.post("/subscriptions", &subscription).await.json();
        let payment =
            json!({"subscription_id": created["id"], "amount": 1, "currency": "USD"}).to_string();
        let paid = owner.post("/subscription-payments", &payment).await.json();
        Self {
            subscription,
            payment,
            subscription_path: format!("/subscriptions/{}", text(&created)),
            payment_path: format!("/subscription-payments/{}", text(&paid)),
        }
    }

    async fn read(&self, owner: &ApiClient) -> [String; 2] {
        let subscription = owner.get(&self.subscription_path).await.text;
        [subscription, owner.get(&self.payment_path).await.text]
    }
}

/// Sends a request that succeeds, or returns 404, if the client is authorized.
async fn call(api: &ApiClient, route: &str, other: &OtherTenant) -> (u16, String) {
    let (method, path) = route.split_once(' ').unwrap();
    let body = match route {
        "POST /subscription-plans" => Some(minimal_plan("ours").to_string()),
        "PUT /subscription-plans/{slug}" => Some(r#"{"tier": 9}"#.to_owned()),
        "POST /subscriptions" => Some(other.subscription.clone()),
        "POST /subscription-payments" => Some(other.payment.clone()),
        "POST /subscriptions/{id}/preview" => Some(r#"{"status": "paused"}"#.to_owned()),
        "PUT /subscriptions/{id}" | "PUT /subscription-payments/{payment_id}" => {
            Some(r#"{"status": "failed"}"#.to_owned())
        }
        "PUT /users/{id}" => Some(r#"{"external_user_id": "ours"}"#.to_owned()),
        "POST /webhook-endpoints" => Some(r#"{"url": "https://1.1.1.1/"}"#.to_owned()),
        "PUT /webhook-endpoints/{id}" => Some(r#"{"order": "strict"}"#.to_owned()),
        "POST /webhook-endpoints/{id}/replays" => {
            Some(r#"{"from": "2026-11-15T00:00:00Z"}"#.to_owned())
        }
        "POST /payment-accounts" => {
            Some(r#"{"provider": "lemonsqueezy", "mode": "test"}"#.to_owned())
        }
        "POST /checkouts" => Some(
            r#"{"subscription_plan_slug": "theirs", "success_url": "https://example.com/"}"#
                .to_owned(),
        ),
        "PUT /payment-accounts/{id}" => Some(r#"{"description": "ours"}"#.to_owned()),
        "POST /billing-portal-sessions"
        | "POST /payment-accounts/{id}/rotate-secret"
        | "POST /clients/{id}/rotate" => Some("{}".to_owned()),
        "POST /clients" => Some(r#"{"name": "ours", "scopes": []}"#.to_owned()),
        "PUT /clients/{id}" => Some(r#"{"name": "ours"}"#.to_owned()),
        // The clock only moves forward.
        "PUT /sandbox/clock" => Some(r#"{"now": "2020-01-01T00:00:00Z"}"#.to_owned()),
        "POST /identity-providers" => {
            Some(r#"{"issuer": "https://1.1.1.1", "audiences": ["ours"]}"#.to_owned())
        }
        "PUT /identity-providers/{id}" => Some(r#"{"audiences": ["ours"]}"#.to_owned()),
        "POST /staff" => Some(r#"{"email": "bob@example.com", "role": "viewer"}"#.to_owned()),
        "PUT /staff/{id}" => Some(r#"{"role": "viewer"}"#.to_owned()),
        "POST /users" => Some(r#"{"email": "made@example.com"}"#.to_owned()),
        "POST /authentication/sign-in" | "POST /authentication/sign-up" => {
            Some(r#"{"access_token": "x", "email": "ada@example.com"}"#.to_owned())
        }
        "POST /authentication/refresh-token" => Some(r#"{"refresh_token": "x"}"#.to_owned()),
        _ => None,
    };
    let path = path
        .replace("{slug}", "theirs")
        .replace("/subscriptions/{id}", &other.subscription_path)
        .replace("/subscription-payments/{payment_id}", &other.payment_path)
        .replace(
            "/webhook-endpoints/{id}",
            "/webhook-endpoints/whe_01920000000070008000000000000001",
        )
        .replace(
            "/payment-accounts/{id}",
            "/payment-accounts/pac_01920000000070008000000000000001",
        )
        .replace(
            "/payment-notifications/{id}",
            "/payment-notifications/pnt_01920000000070008000000000000001",
        )
        .replace(
            "/clients/{id}",
            "/clients/cli_01920000000070008000000000000001",
        )
        .replace(
            "/identity-providers/{id}",
            "/identity-providers/idp_01920000000070008000000000000001",
        )
        .replace("/staff/{id}", "/staff/stf_01920000000070008000000000000001")
        .replace("{id}", "usr_01920000000070008000000000000001")
        .replace("{user_id}", "usr_01920000000070008000000000000001")
        .replace("{auth_id}", "usr_01920000000070008000000000000001");
    let path = match route {
        "GET /users" => "/users?email=theirs@example.com".to_owned(),
        "GET /subscriptions/next-steps" => {
            format!("{path}?subscription_id=sub_01920000000070008000000000000001")
        }
        _ => path,
    };
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let api = api.with("content-type", "application/json");
    let response = api
        .try_send(method, &path, body.map(String::into_bytes))
        .await
        .unwrap();
    let code = if response.status < 400 {
        String::new()
    } else {
        response.problem()
    };
    (response.status, code)
}

/// Every role on every route: what a member may do follows from the scopes of the role, except what only admins may do.
#[tokio::test]
async fn every_route_enforces_the_scopes_of_each_role() {
    let service = Service::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let owner = service.api(&["--tenant", "other"]);
    owner
        .create("/subscription-plans", &minimal_plan("theirs"))
        .await;
    let other = OtherTenant::create(&owner).await;
    let records = other.read(&owner).await;
    for role in StaffRole::ALL {
        let arguments = ["--tenant", "default", "--role", role.as_str()];
        let staff = crate::staff::sign_in(&service, &arguments).await;
        for row in TABLE {
            let route = row.route;
            let additional = ADDITIONAL_SCOPES
                .iter()
                .filter(|(named, _)| *named == route);
            let mut scopes = additional.map(|(_, scope)| *scope).chain([row.scope]);
            let is_allowed = scopes.all(|scope| role.scopes().contains(&scope))
                && (role == StaffRole::Admin || !ADMIN_ONLY.contains(&route));
            let (status, code) = call(&staff, route, &other).await;
            assert_eq!(
                code == "insufficient_scope",
                !is_allowed,
                "{role}, {route}: {code}"
            );
            assert_eq!(status == 403, !is_allowed, "{role}, {route}: {code}");
            assert_ne!(status, 401, "{role}, {route}: {code}");
        }
    }
    assert_eq!(other.read(&owner).await, records);
}

/// The document says where a bearer token is required, optional or unused.
#[test]
fn documented_security_matches_the_policy() {
    let document: Value = serde_json::from_str(&run_ok(&Variables::new(), &["openapi"])).unwrap();
    assert_eq!(document["security"], json!([{"client-id": []}]));
    let with_bearer = json!({"bearer": [], "client-id": []});
    for row in TABLE {
        let (method, path) = row.route.split_once(' ').unwrap();
        let operation = &document["paths"][path][method.to_lowercase()];
        let expected = match row.user {
            BearerPolicy::Required => json!([with_bearer]),
            BearerPolicy::Narrows | BearerPolicy::OrServer | BearerPolicy::SelfService => {
                json!([{"client-id": []}, with_bearer])
            }
            BearerPolicy::Ignored | BearerPolicy::Refused => Value::Null,
        };
        assert_eq!(operation["security"], expected, "{}", row.route);
    }
}

#[tokio::test]
async fn every_route_enforces_its_policy() {
    let service = Service::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let api = |arguments: &[&str]| service.api(&[&["--tenant", "default"], arguments].concat());
    let owner = service.api(&["--tenant", "other"]);
    assert_eq!(
        owner
            .post("/subscription-plans", &minimal_plan("theirs").to_string())
            .await
            .status,
        201
    );
    let plan = owner.get("/subscription-plans/theirs").await.text;
    let other = OtherTenant::create(&owner).await;
    let records = other.read(&owner).await;
    let call = async |api: &ApiClient, route: &str| call(api, route, &other).await;

    let anonymous = service.anonymous();
    let unknown = anonymous.with("client-id", "prn_sk_unknown");
    let (id, value) = service.create_client(&["--tenant", "default"]);
    run_ok(
        &service.variables,
        &["client", "disable", "--tenant", "default", &id],
    );
    let disabled = anonymous.with("client-id", &value);
    let secret = api(&every_scope());
    let publishable = api(&["--kind", "publishable"]);

    // A client of each kind with each single scope that its kind can have.
    let single_scope = Scope::ALL.iter().map(|scope| {
        let publishable = ["--kind", "publishable", "--scope", scope.as_str()];
        let possible = ClientKind::Publishable.allowed_scopes().contains(scope);
        let server = api(&["--scope", scope.as_str()]);
        (scope, server, possible.then(|| api(&publishable)))
    });
    let single_scope: Vec<_> = single_scope.collect();
    for route in OPEN {
        assert_eq!(call(&anonymous, route).await.0, 200, "{route}");
    }
    for route in CONSOLE {
        let (status, code) = match *route {
            "GET /console/session" => (401, "invalid_staff_session"),
            "GET /console/sign-in/{provider}" => (404, "not_found"),
            "GET /console/callback" => (303, ""),
            _ => (403, "cross_site_request"),
        };
        let expected = (status, code.to_owned());
        for client in [&anonymous, &secret] {
            assert_eq!(call(client, route).await, expected, "{route}");
        }
    }
    for route in SIGNED {
        // The id is unknown. No client makes a difference.
        let responses = [call(&anonymous, route).await, call(&secret, route).await];
        assert_eq!(responses.map(|(status, _)| status), [404, 404], "{route}");
    }
    secret.sign_up("user@example.com").await;
    let other_user = owner.sign_in("user@example.com").await;
    for row in TABLE {
        let route = row.route;
        // Bearer tokens of this tenant, of another tenant, and invalid ones.
        let with = |token: &str| secret.with_bearer(token);
        // Signs in again for each route, because some routes revoke the session.
        let user = secret.sign_in("user@example.com").await;
        let own = call(&with(user.access()), route).await.1;
        let without = call(&secret, route).await.1;
        for bad in [other_user.access(), user.refresh(), "nonsense", ""] {
            let code = call(&with(bad), route).await.1;
            match row.user {
                BearerPolicy::Ignored => assert_eq!(code, without, "{route}"),
                BearerPolicy::Narrows | BearerPolicy::OrServer | BearerPolicy::Required => {
                    assert_eq!(code, "invalid_token", "{route}");
                }
                BearerPolicy::Refused | BearerPolicy::SelfService => {
                    assert_eq!(code, "not_for_users", "{route}");
                }
            }
        }
        let (with_user, without_user) = match row.user {
            BearerPolicy::Ignored => (own == without, true),
            BearerPolicy::Narrows | BearerPolicy::OrServer => {
                (own != "not_for_users", without != "invalid_token")
            }
            // Another user's account, or no session of the user, is rejected for another reason.
            BearerPolicy::Required => (
                ["", "not_your_account", "session_not_found"].contains(&own.as_str()),
                without == "invalid_token",
            ),
            BearerPolicy::Refused | BearerPolicy::SelfService => {
                (own == "not_for_users", without != "not_for_users")
            }
        };
        assert!(with_user && without_user, "{route}: {own}, {without}");
        for unauthenticated in [&anonymous, &unknown, &disabled] {
            assert_eq!(
                call(unauthenticated, route).await,
                (401, "invalid_client".to_owned()),
                "{route}"
            );
        }
        let forbidden = (403, "insufficient_scope".to_owned());
        let on_behalf = |page: &ApiClient| match row.user {
            BearerPolicy::OrServer | BearerPolicy::SelfService => page.with_bearer(user.access()),
            _ => page.clone(),
        };
        if [BearerPolicy::OrServer, BearerPolicy::SelfService].contains(&row.user) {
            assert_eq!(call(&publishable, route).await, forbidden, "{route}");
        }
        let browser = call(&on_behalf(&publishable), route).await;
        assert_eq!(
            browser == forbidden,
            !row.publishable,
            "{route} as publishable: {browser:?}"
        );
        // Only the required scope gives access, or all of them.
        let additional = ADDITIONAL_SCOPES
            .iter()
            .filter(|(named, _)| *named == route);
        let mut required = vec![row.scope];
        required.extend(additional.map(|(_, scope)| *scope));
        let all = required
            .iter()
            .flat_map(|scope| ["--scope", scope.as_str()]);
        let all = api(&all.collect::<Vec<_>>());
        assert_ne!(call(&all, route).await, forbidden, "{route}");
        for (scope, server, page) in &single_scope {
            let response = call(server, route).await;
            assert_eq!(
                response == forbidden,
                **scope != row.scope || required.len() > 1,
                "{route} with only {scope}: {response:?}"
            );
            if let Some(page) = page.as_ref().filter(|_| row.publishable) {
                let response = call(&on_behalf(page), route).await;
                // The tenant's setting decides what users can change.
                let required = match row.user {
                    BearerPolicy::SelfService => Scope::SubscriptionsRead,
                    _ => row.scope,
                };
                assert_eq!(
                    response == forbidden,
                    **scope != required,
                    "{route} as publishable with only {scope}"
                );
            }
        }
        // All scopes, but another tenant: its records are not found.
        let response = call(&secret, route).await;
        if route.contains("{slug}") {
            assert_eq!(response, (404, "plan_not_found".to_owned()), "{route}");
        }
        if route.contains("/subscription")
            && (route.contains("{id}") || route.contains("{payment_id}"))
        {
            assert_eq!(response.0, 404, "{route}: {response:?}");
        }
        if ["POST /subscriptions", "POST /subscription-payments"].contains(&route) {
            assert_eq!(response, (422, "unknown_reference".to_owned()), "{route}");
        }
    }
    let listed = secret.get("/subscription-plans").await;
    assert!(
        listed.text.contains(r#""slug":"ours""#) && !listed.text.contains("theirs"),
        "{}",
        listed.text
    );
    // The other tenant's records are unchanged.
    assert_eq!(owner.get("/subscription-plans/theirs").await.text, plan);
    assert_eq!(other.read(&owner).await, records);
    assert_eq!(
        owner.get("/subscription-plans").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
