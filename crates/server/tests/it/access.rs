//! Who may call what: every route of the router times every kind of caller, as one table.
//!
//! A route that is not in the table fails, and so does a row without a route.

use std::collections::BTreeSet;

use perennial_domain::{ClientKind, Scope};
use reqwest::Method;
use serde_json::Value;

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

/// Sends a request that a caller who may do it would succeed with, or at least be told 404.
async fn call(caller: &Api, route: &str) -> (u16, String) {
    let (method, path) = route.split_once(' ').unwrap();
    let body = match route {
        "POST /subscription-plans" => Some(minimal("ours").to_string()),
        "PUT /subscription-plans/{slug}" => Some(r#"{"tier": 9}"#.to_owned()),
        "POST /users" => Some(r#"{"email": "made@example.com"}"#.to_owned()),
        "POST /authentication/sign-in" | "POST /authentication/sign-up" => {
            Some(r#"{"access_token": "x", "email": "ada@example.com"}"#.to_owned())
        }
        "POST /authentication/refresh-token" => Some(r#"{"refresh_token": "x"}"#.to_owned()),
        _ => None,
    };
    let path = path
        .replace("{slug}", "theirs")
        .replace("{id}", "usr_01920000000070008000000000000001")
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
    let theirs = owner.get("/subscription-plans/theirs").await.text;

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

    for route in OPEN {
        assert_eq!(call(&anonymous, route).await.0, 200, "{route}");
    }
    secret.sign_up("user@example.com").await;
    let foreigner = owner.sign_up("user@example.com").await;
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
                User::Narrows | User::Required => assert_eq!(code, "invalid_token", "{route}"),
                User::Refused => assert_eq!(code, "not_for_users", "{route}"),
            }
        }
        let (bears_it, lacks_it) = match row.user {
            User::Ignored => (own == without, true),
            User::Narrows => (own != "not_for_users", without != "invalid_token"),
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
        let browser = call(&publishable, route).await;
        assert_eq!(
            browser == refused,
            !row.publishable,
            "{route} as publishable: {browser:?}"
        );
        // Each scope alone: the one that is asked for opens the route, no other does.
        for scope in Scope::ALL {
            let answer = call(&caller(&["--scope", scope.as_str()]), route).await;
            assert_eq!(
                answer == refused,
                *scope != row.scope,
                "{route} with {scope} alone: {answer:?}"
            );
            let possible = ClientKind::Publishable.scopes().contains(scope);
            if row.publishable && possible {
                let browser = caller(&["--kind", "publishable", "--scope", scope.as_str()]);
                let answer = call(&browser, route).await;
                assert_eq!(
                    answer == refused,
                    *scope != row.scope,
                    "{route} as publishable with {scope} alone"
                );
            }
        }
        // All scopes, but of another tenant: what is theirs is not there.
        let answer = call(&secret, route).await;
        if route.contains("{slug}") {
            assert_eq!(answer, (404, "plan_not_found".to_owned()), "{route}");
        }
    }
    let listed = secret.get("/subscription-plans").await;
    assert!(
        listed.text.contains(r#""slug":"ours""#) && !listed.text.contains("theirs"),
        "{}",
        listed.text
    );
    // Whatever was sent, the other tenant's plan is as it was.
    assert_eq!(owner.get("/subscription-plans/theirs").await.text, theirs);
    assert_eq!(
        owner.get("/subscription-plans").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
