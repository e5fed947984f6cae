//! Who may call what: every route of the router times every kind of caller, as one table.
//!
//! A route that is not in the table fails, and so does a row without a route.

use std::collections::BTreeSet;

use perennial_domain::{ClientKind, Scope};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    harness::{
        api::Api,
        process::{Variables, run_ok},
        service::Service,
    },
    subscription_plans::minimal,
};

/// What a route asks of its caller.
struct Row {
    route: &'static str,
    scope: Scope,
    publishable: bool,
    user: User,
}

/// What a user's bearer means there.
#[derive(PartialEq)]
enum User {
    Ignored,
    Narrows,
    /// The same, and only a server may do without.
    OrServer,
    Required,
    Refused,
}

/// Routes that ask for no client at all.
const OPEN: &[&str] = &[
    "GET /.well-known/jwks.json",
    "GET /.well-known/openid-configuration",
];

const TABLE: &[Row] = &[
    Row {
        route: "POST /authentication/sign-in",
        scope: Scope::Auth,
        publishable: true,
        user: User::Ignored,
    },
    Row {
        route: "POST /authentication/sign-up",
        scope: Scope::Auth,
        publishable: true,
        user: User::Ignored,
    },
    Row {
        route: "POST /authentication/user-logged-in",
        scope: Scope::Auth,
        publishable: true,
        user: User::Required,
    },
    Row {
        route: "POST /authentication/refresh-token",
        scope: Scope::Auth,
        publishable: true,
        user: User::Ignored,
    },
    Row {
        route: "DELETE /authentication/delete-my-account/{auth_id}",
        scope: Scope::Auth,
        publishable: true,
        user: User::Required,
    },
    Row {
        route: "GET /authentication/tokens",
        scope: Scope::Auth,
        publishable: true,
        user: User::Required,
    },
    Row {
        route: "POST /authentication/tokens/logout",
        scope: Scope::Auth,
        publishable: true,
        user: User::Required,
    },
    Row {
        route: "POST /authentication/tokens/revoke-all",
        scope: Scope::Auth,
        publishable: true,
        user: User::Required,
    },
    Row {
        route: "POST /authentication/tokens/revoke-all-except-current",
        scope: Scope::Auth,
        publishable: true,
        user: User::Required,
    },
    Row {
        route: "GET /subscription-plans",
        scope: Scope::PlansRead,
        publishable: true,
        user: User::Narrows,
    },
    Row {
        route: "POST /subscription-plans",
        scope: Scope::PlansWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "GET /subscription-plans/{slug}",
        scope: Scope::PlansRead,
        publishable: true,
        user: User::Narrows,
    },
    Row {
        route: "PUT /subscription-plans/{slug}",
        scope: Scope::PlansWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "DELETE /subscription-plans/{slug}",
        scope: Scope::PlansWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "GET /subscriptions",
        scope: Scope::SubscriptionsRead,
        publishable: true,
        user: User::OrServer,
    },
    Row {
        route: "POST /subscriptions",
        scope: Scope::SubscriptionsWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "GET /subscriptions/{id}",
        scope: Scope::SubscriptionsRead,
        publishable: true,
        user: User::OrServer,
    },
    Row {
        route: "PUT /subscriptions/{id}",
        scope: Scope::SubscriptionsWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "DELETE /subscriptions/{id}",
        scope: Scope::SubscriptionsWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "GET /subscriptions/{id}/payments",
        scope: Scope::PaymentsRead,
        publishable: true,
        user: User::OrServer,
    },
    Row {
        route: "GET /subscription-payments/{payment_id}",
        scope: Scope::PaymentsRead,
        publishable: true,
        user: User::OrServer,
    },
    Row {
        route: "POST /subscription-payments",
        scope: Scope::PaymentsWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "PUT /subscription-payments/{payment_id}",
        scope: Scope::PaymentsWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "DELETE /subscription-payments/{payment_id}",
        scope: Scope::PaymentsWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "GET /entitlements",
        scope: Scope::SubscriptionsRead,
        publishable: true,
        user: User::Required,
    },
    Row {
        route: "GET /entitlements/{user_id}",
        scope: Scope::SubscriptionsRead,
        publishable: false,
        user: User::Narrows,
    },
    Row {
        route: "GET /users",
        scope: Scope::UsersRead,
        publishable: false,
        user: User::Narrows,
    },
    Row {
        route: "POST /users",
        scope: Scope::UsersWrite,
        publishable: false,
        user: User::Refused,
    },
    Row {
        route: "GET /users/{id}",
        scope: Scope::UsersRead,
        publishable: false,
        user: User::Narrows,
    },
];

/// The routes of the router, by way of the document that is derived from it.
fn routes() -> BTreeSet<String> {
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
fn every_route_has_its_row() {
    let rows = TABLE
        .iter()
        .map(|row| row.route)
        .chain(OPEN.iter().copied());
    let rows: BTreeSet<String> = rows.map(str::to_owned).collect();
    assert_eq!(rows, routes());
}

/// What another tenant has.
struct Theirs {
    /// Fields that would make another one.
    subscription: String,
    payment: String,
    subscription_path: String,
    payment_path: String,
}

impl Theirs {
    async fn make(owner: &Api) -> Self {
        let text = |value: &Value| value["id"].as_str().unwrap().to_owned();
        let user = owner.sign_up("user@example.com").await.user().to_owned();
        let plan = owner.get("/subscription-plans/theirs").await.json();
        let subscription = json!({"user_id": user, "subscription_plan_id": plan["id"]}).to_string();
        let made = owner.post("/subscriptions", &subscription).await.json();
        let payment =
            json!({"subscription_id": made["id"], "amount": 1, "currency": "USD"}).to_string();
        let paid = owner.post("/subscription-payments", &payment).await.json();
        Self {
            subscription,
            payment,
            subscription_path: format!("/subscriptions/{}", text(&made)),
            payment_path: format!("/subscription-payments/{}", text(&paid)),
        }
    }

    async fn shown(&self, owner: &Api) -> [String; 2] {
        let subscription = owner.get(&self.subscription_path).await.text;
        [subscription, owner.get(&self.payment_path).await.text]
    }
}

/// Sends a request that a caller who may do it would succeed with, or at least be told 404.
async fn call(caller: &Api, route: &str, theirs: &Theirs) -> (u16, String) {
    let (method, path) = route.split_once(' ').unwrap();
    let body = match route {
        "POST /subscription-plans" => Some(minimal("ours").to_string()),
        "PUT /subscription-plans/{slug}" => Some(r#"{"tier": 9}"#.to_owned()),
        "POST /subscriptions" => Some(theirs.subscription.clone()),
        "POST /subscription-payments" => Some(theirs.payment.clone()),
        "PUT /subscriptions/{id}" | "PUT /subscription-payments/{payment_id}" => {
            Some(r#"{"status": "failed"}"#.to_owned())
        }
        "POST /users" => Some(r#"{"email": "made@example.com"}"#.to_owned()),
        "POST /authentication/sign-in" | "POST /authentication/sign-up" => {
            Some(r#"{"access_token": "x", "email": "ada@example.com"}"#.to_owned())
        }
        "POST /authentication/refresh-token" => Some(r#"{"refresh_token": "x"}"#.to_owned()),
        _ => None,
    };
    let path = path
        .replace("{slug}", "theirs")
        .replace("/subscriptions/{id}", &theirs.subscription_path)
        .replace("/subscription-payments/{payment_id}", &theirs.payment_path)
        .replace("{id}", "usr_01920000000070008000000000000001")
        .replace("{user_id}", "usr_01920000000070008000000000000001")
        .replace("{auth_id}", "usr_01920000000070008000000000000001");
    let path = if route == "GET /users" {
        "/users?email=theirs@example.com".to_owned()
    } else {
        path
    };
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let caller = caller.with("content-type", "application/json");
    let answer = caller
        .try_send(method, &path, body.map(String::into_bytes))
        .await
        .unwrap();
    let code = if answer.status < 400 {
        String::new()
    } else {
        answer.problem()
    };
    (answer.status, code)
}

#[tokio::test]
async fn every_route_times_every_caller() {
    let service = Service::start().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let caller =
        |arguments: &[&str]| service.caller(&[&["--tenant", "default"], arguments].concat());
    let owner = service.caller(&["--tenant", "other"]);
    assert_eq!(
        owner
            .post("/subscription-plans", &minimal("theirs").to_string())
            .await
            .status,
        201
    );
    let plan = owner.get("/subscription-plans/theirs").await.text;
    let theirs = Theirs::make(&owner).await;
    let records = theirs.shown(&owner).await;
    let call = async |caller: &Api, route: &str| call(caller, route, &theirs).await;

    let anonymous = service.anonymous();
    let unknown = anonymous.with("client-id", "prn_sk_unknown");
    let (id, value) = service.make_client(&["--tenant", "default"]);
    run_ok(
        &service.variables,
        &["client", "disable", "--tenant", "default", &id],
    );
    let disabled = anonymous.with("client-id", &value);
    let secret = caller(&[]);
    let publishable = caller(&["--kind", "publishable"]);

    // One of each kind with each scope alone, as far as its kind can have it.
    let alone = Scope::ALL.iter().map(|scope| {
        let page = ["--kind", "publishable", "--scope", scope.as_str()];
        let possible = ClientKind::Publishable.scopes().contains(scope);
        let server = caller(&["--scope", scope.as_str()]);
        (scope, server, possible.then(|| caller(&page)))
    });
    let alone: Vec<_> = alone.collect();
    for route in OPEN {
        assert_eq!(call(&anonymous, route).await.0, 200, "{route}");
    }
    secret.sign_up("user@example.com").await;
    let foreigner = owner.sign_in("user@example.com").await;
    for row in TABLE {
        let route = row.route;
        // A bearer of one's own tenant, of another tenant, and nonsense.
        let with = |token: &str| secret.on_behalf_of(token);
        // Some of the routes end it.
        let user = secret.sign_in("user@example.com").await;
        let own = call(&with(user.access()), route).await.1;
        let without = call(&secret, route).await.1;
        for bad in [foreigner.access(), user.refresh(), "nonsense", ""] {
            let code = call(&with(bad), route).await.1;
            match row.user {
                User::Ignored => assert_eq!(code, without, "{route}"),
                User::Narrows | User::OrServer | User::Required => {
                    assert_eq!(code, "invalid_token", "{route}");
                }
                User::Refused => assert_eq!(code, "not_for_users", "{route}"),
            }
        }
        let (bears_it, lacks_it) = match row.user {
            User::Ignored => (own == without, true),
            User::Narrows | User::OrServer => (own != "not_for_users", without != "invalid_token"),
            // Somebody else's account is refused for another reason.
            User::Required => (
                own.is_empty() || own == "not_your_account",
                without == "invalid_token",
            ),
            User::Refused => (own == "not_for_users", without != "not_for_users"),
        };
        assert!(bears_it && lacks_it, "{route}: {own}, {without}");
        for nobody in [&anonymous, &unknown, &disabled] {
            assert_eq!(
                call(nobody, route).await,
                (401, "invalid_client".to_owned()),
                "{route}"
            );
        }
        let refused = (403, "insufficient_scope".to_owned());
        let on_behalf = |page: &Api| match row.user {
            User::OrServer => page.on_behalf_of(user.access()),
            _ => page.clone(),
        };
        if row.user == User::OrServer {
            assert_eq!(call(&publishable, route).await, refused, "{route}");
        }
        let browser = call(&on_behalf(&publishable), route).await;
        assert_eq!(
            browser == refused,
            !row.publishable,
            "{route} as publishable: {browser:?}"
        );
        // Each scope alone: the one that is asked for opens the route, no other does.
        for (scope, server, page) in &alone {
            let answer = call(server, route).await;
            assert_eq!(
                answer == refused,
                **scope != row.scope,
                "{route} with {scope} alone: {answer:?}"
            );
            if let Some(page) = page.as_ref().filter(|_| row.publishable) {
                let answer = call(&on_behalf(page), route).await;
                assert_eq!(
                    answer == refused,
                    **scope != row.scope,
                    "{route} as publishable with {scope} alone"
                );
            }
        }
        // All scopes, but of another tenant: what is theirs is not there.
        let answer = call(&secret, route).await;
        if route.contains("{slug}") {
            assert_eq!(answer, (404, "plan_not_found".to_owned()), "{route}");
        }
        if route.contains("/subscription")
            && (route.contains("{id}") || route.contains("{payment_id}"))
        {
            assert_eq!(answer.0, 404, "{route}: {answer:?}");
        }
        if ["POST /subscriptions", "POST /subscription-payments"].contains(&route) {
            assert_eq!(answer, (422, "unknown_reference".to_owned()), "{route}");
        }
    }
    let listed = secret.get("/subscription-plans").await;
    assert!(
        listed.text.contains(r#""slug":"ours""#) && !listed.text.contains("theirs"),
        "{}",
        listed.text
    );
    // Whatever was sent, the other tenant's plan is as it was.
    assert_eq!(owner.get("/subscription-plans/theirs").await.text, plan);
    assert_eq!(theirs.shown(&owner).await, records);
    assert_eq!(
        owner.get("/subscription-plans").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
