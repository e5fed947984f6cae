//! `GET /users/{id}/timeline`: why a subscription has its status, what happens next, and what fixes it.

use serde_json::{Value, json};

use crate::{
    harness::{process::run_ok, service::Service},
    lifecycle::fixture::{Managed, minute},
    subscription_plans::minimal_plan,
    subscriptions::{
        CREATE_SUBSCRIPTION, SubscriptionFixture, create_plan, create_user, record_path,
    },
};

async fn timeline(managed: &Managed, user: &Value) -> Value {
    let path = format!("/users/{}/timeline", user.as_str().unwrap());
    managed.api.get_json(&path).await
}

/// Returns the spans as `from status`, with `+` for those in the future and `-` for those without access.
fn lifeline(subscription: &Value) -> Vec<String> {
    let segments = subscription["segments"].as_array().unwrap();
    let shown = segments.iter().map(|segment| {
        let future = if segment["future"] == true { "+" } else { "" };
        let access = if segment["is_active"] == true {
            ""
        } else {
            " -"
        };
        let from = &segment["from"].as_str().unwrap()[..10];
        format!(
            "{future}{from} {}{access}",
            segment["status"].as_str().unwrap()
        )
    });
    shown.collect()
}

fn sentences(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|item| item["sentence"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn late_subscription_is_explained_and_the_fix_works() {
    let managed = Managed::start().await;
    let created = managed.subscribe_and_pay("pro", 10.0).await;
    let user = &created["user_id"];
    let paid = timeline(&managed, user).await;
    assert_eq!(paid["as_of"], "2027-01-01T12:00:00.000000Z");
    assert_eq!(paid["erased_at"], Value::Null);
    let subscription = &paid["subscriptions"][0];
    assert_eq!(subscription["id"], created["id"]);
    assert_eq!(subscription["subscription_plan_slug"], "pro");
    assert_eq!(
        subscription["sentence"],
        "Active since 2027-01-01 12:00: the period from 2027-01-01 12:00 to 2027-02-01 12:00 is paid."
    );
    assert_eq!(
        lifeline(subscription),
        [
            "2027-01-01 active",
            "+2027-02-01 past_due",
            "+2027-02-08 unpaid -",
            "+2027-03-03 expired -"
        ]
    );

    managed.advance("2027-02-03T00:00:00Z").await;
    let late = timeline(&managed, user).await;
    let subscription = &late["subscriptions"][0];
    assert_eq!(
        (&subscription["status"], &subscription["is_active"]),
        (&json!("past_due"), &json!(true))
    );
    assert_eq!(
        subscription["sentence"],
        "Past due since 2027-02-01 12:00: the period from 2027-02-01 12:00 costs 10.00 USD and is not paid."
    );
    assert_eq!(
        sentences(&subscription["next"]),
        [
            "Access ends on 2027-02-08 12:00 unless 10.00 USD is paid.",
            "Expires on 2027-03-03 12:00 unless 20.00 USD is paid by then, or 10.00 USD now."
        ]
    );
    let at = &subscription["next"][0]["at"];
    assert_eq!(minute(at), "2027-02-08T12:00");
    assert_eq!(subscription["next"][0]["status"], "unpaid");
    assert_eq!(
        lifeline(subscription),
        [
            "2027-01-01 active",
            "2027-02-01 past_due",
            "+2027-02-08 unpaid -",
            "+2027-03-03 expired -"
        ]
    );
    let segments = subscription["segments"].as_array().unwrap();
    assert_eq!(segments[0]["sentence"], Value::Null);
    assert_eq!(segments[1]["sentence"], subscription["sentence"]);
    assert_eq!(segments[1]["to"], segments[2]["from"]);
    assert_eq!(segments[3]["to"], Value::Null);
    let payments = subscription["payments"].as_array().unwrap();
    assert_eq!(payments.len(), 1);
    assert_eq!(
        (&payments[0]["amount"], &payments[0]["status"]),
        (&json!(10.0), &json!("completed"))
    );

    // The request of the fix does what its sentence says.
    let fixes = subscription["fixes"].as_array().unwrap();
    assert_eq!(
        sentences(&subscription["fixes"]),
        ["A completed payment of 10.00 USD or more makes it active."]
    );
    assert_eq!(fixes[0]["action"], "record_payment");
    assert_eq!(
        (&fixes[0]["amount"], &fixes[0]["currency"]),
        (&json!(10.0), &json!("USD"))
    );
    let request = &fixes[0]["request"];
    assert_eq!(request["method"], "POST");
    let path = request["path"].as_str().unwrap();
    managed.api.create(path, &request["body"]).await;
    let active = timeline(&managed, user).await;
    assert_eq!(active["subscriptions"][0]["status"], "active");
    assert_eq!(
        lifeline(&active["subscriptions"][0])[..3],
        [
            "2027-01-01 active",
            "2027-02-01 past_due",
            "2027-02-03 active"
        ]
    );
}

#[tokio::test]
async fn entries_are_events_with_actor_and_request() {
    let fixture = SubscriptionFixture::start().await;
    let (client, key) = fixture.service.create_client(&["--name", "backend"]);
    let backend = fixture.service.anonymous().with("client-id", &key);
    let subscription = backend
        .create("/subscriptions", &fixture.fields(&json!({})))
        .await;
    let path = record_path(&subscription);
    let suspended = backend.put(&path, r#"{"is_active": false}"#).await;
    let request = suspended.header("x-request-id").to_owned();
    let id = subscription["id"].as_str().unwrap();
    let record = ["payment", "record", "--subscription", id, "--amount", "5"];
    run_ok(&fixture.service.variables, &record);
    let timeline_path = format!("/users/{}/timeline", fixture.user);
    let response = backend.get(&timeline_path).await;
    assert_eq!(response.header("cache-control"), "no-store");
    assert!(
        response.text.contains(r#""amount":5.00,"#),
        "{}",
        response.text
    );
    let timeline = response.json();
    let entries = timeline["entries"].as_array().unwrap();
    let types: Vec<&Value> = entries.iter().map(|entry| &entry["type"]).collect();
    assert_eq!(
        types,
        [
            "payment.created",
            "subscription.updated",
            "subscription.created",
            "user.created"
        ]
    );
    assert_eq!(timeline["has_more"], false);
    assert_eq!(entries[0]["actor"]["type"], "operator");
    assert_eq!(
        entries[0]["sentence"],
        "Payment recorded: 5.00 USD, completed."
    );
    assert_eq!(entries[1]["actor"], json!({"type": "client", "id": client}));
    assert_eq!(entries[1]["client_name"], "backend");
    assert_eq!(entries[1]["request_id"], request);
    assert_eq!(entries[1]["subject_id"], subscription["id"]);
    assert_eq!(
        entries[1]["sentence"],
        "Subscription updated: is_active true → false, suspended false → true."
    );
    let explained = &timeline["subscriptions"][0];
    let sentence = explained["sentence"].as_str().unwrap();
    assert!(
        sentence.ends_with(", but access is suspended."),
        "{sentence}"
    );
    assert_eq!(explained["fixes"][0]["action"], "lift_suspension");

    // The CLI prints the same sentences.
    let shown = run_ok(&fixture.service.variables, &["subscription", "show", id]);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [sentence, sentences(&explained["fixes"])[0]] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }

    // Without payments:read, there are no payments.
    let scopes = ["--scope", "users:read", "--scope", "subscriptions:read"];
    let support = fixture.service.api(&scopes);
    let timeline = support.get_json(&timeline_path).await;
    assert_eq!(timeline["subscriptions"][0]["payments"], Value::Null);
    assert_eq!(timeline["entries"][0]["type"], "subscription.updated");
    for scope in ["users:read", "subscriptions:read"] {
        let response = fixture
            .service
            .api(&["--scope", scope])
            .get(&timeline_path)
            .await;
        response.assert_problem(403, "insufficient_scope");
    }
}

#[tokio::test]
async fn subscriptions_are_newest_first_and_deleted_ones_are_marked() {
    let managed = Managed::start().await;
    let user = create_user(&managed.api, "ada@example.com").await;
    let first = managed.api.subscribe_user(&user, "pro", json!({})).await;
    managed.advance("2027-01-05T12:00:00Z").await;
    let second = managed.api.subscribe_user(&user, "free", json!({})).await;
    managed.advance("2027-01-06T12:00:00Z").await;
    assert_eq!(managed.api.delete(&record_path(&first)).await.status, 204);
    let timeline = timeline(&managed, &json!(user)).await;
    let [newest, oldest] = [0, 1].map(|index| &timeline["subscriptions"][index]);
    assert_eq!(
        (&newest["id"], &oldest["id"]),
        (&second["id"], &first["id"])
    );
    assert_eq!(newest["deleted_at"], Value::Null);
    assert_eq!(newest["fixes"], json!([]));
    assert_eq!(oldest["deleted_at"], "2027-01-06T12:00:00.000000Z");
    assert_eq!(
        oldest["sentence"],
        "Deleted on 2027-01-06 12:00: it was pending and gives no access."
    );
    assert_eq!(
        (&oldest["next"], &oldest["fixes"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(lifeline(oldest), ["2027-01-01 pending -"]);
    assert_eq!(oldest["segments"][0]["to"], oldest["deleted_at"]);
}

#[tokio::test]
async fn erased_user_has_a_timeline_without_personal_data() {
    let managed = Managed::start().await;
    let fields = json!({"email": "ada@example.com", "external_user_id": "customer-1042"});
    let user = managed.api.create("/users", &fields).await;
    let user = user["id"].as_str().unwrap();
    let metadata = json!({"metadata": {"name": "Ada Lovelace"}});
    let subscription = managed.api.subscribe_user(user, "pro", metadata).await;
    managed.pay(&subscription, 10.0).await;
    let update = json!({"metadata": {"name": "Ada King"}});
    managed.api.update(&subscription, update).await;
    let path = format!("/users/{user}");
    assert_eq!(managed.api.delete(&path).await.status, 204);
    let response = managed.api.get(&format!("{path}/timeline")).await;
    assert_eq!(response.status, 200, "{}", response.text);
    for personal in ["ada@example.com", "customer-1042", "Ada"] {
        assert!(!response.text.contains(personal), "{}", response.text);
    }
    let timeline = response.json();
    assert!(timeline["erased_at"].is_string(), "{timeline}");
    let ended = &timeline["subscriptions"][0];
    assert_eq!(
        ended["sentence"],
        "Expired since 2027-01-01 12:00: the user was erased."
    );
    assert_eq!((&ended["next"], &ended["fixes"]), (&json!([]), &json!([])));
}

#[tokio::test]
async fn user_is_found_only_in_its_tenant_and_by_itself() {
    let service = Service::start_in_process().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let api = service.api(&["--tenant", "default"]);
    let other = service.api(&["--tenant", "other"]);
    let [ada, bob] = [
        api.sign_up("ada@example.com").await,
        api.sign_up("bob@example.com").await,
    ];
    let path = format!("/users/{}/timeline", ada.user());
    assert_eq!(api.get_json(&path).await["subscriptions"], json!([]));
    let responses = [
        other.get(&path).await,
        api.with_bearer(bob.access()).get(&path).await,
        api.get("/users/usr_0192f0c1a2b37c4d8e5f60718293a4b5/timeline")
            .await,
        api.get("/users/none/timeline").await,
    ];
    for response in responses {
        response.assert_problem(404, "user_not_found");
    }
    // The user does not learn which operator made a change.
    create_plan(&api, &minimal_plan("pro")).await;
    let tenant = [&CREATE_SUBSCRIPTION[..], &["--tenant", "default"]].concat();
    run_ok(&service.variables, &tenant);
    let operator = |timeline: &Value| {
        let entries = timeline["entries"].as_array().unwrap().iter();
        let mut actors = entries.map(|entry| entry["actor"].clone());
        actors.find(|actor| actor["type"] == "operator").unwrap()
    };
    assert!(operator(&api.get_json(&path).await)["id"].is_string());
    let own = api.with_bearer(ada.access()).get_json(&path).await;
    assert_eq!(operator(&own)["id"], Value::Null);
}

/// Events are limited, and the oldest ones are left out.
#[tokio::test]
async fn long_history_is_limited() {
    let managed = Managed::start().await;
    let created = managed.api.subscribe("daily", json!({})).await;
    managed.pay(&created, 150.0).await;
    managed.advance("2027-05-01T12:00:00Z").await;
    let timeline = timeline(&managed, &created["user_id"]).await;
    let entries = timeline["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &timeline["has_more"]), (100, &json!(true)));
    let times: Vec<&str> = entries
        .iter()
        .map(|entry| entry["at"].as_str().unwrap())
        .collect();
    assert!(
        times.is_sorted_by(|newer, older| newer >= older),
        "{times:?}"
    );
    // Renewals are one span, from the start on and into the future that is paid.
    let subscription = &timeline["subscriptions"][0];
    assert_eq!(
        lifeline(subscription),
        [
            "2027-01-01 active",
            "+2027-05-31 past_due",
            "+2027-06-01 unpaid -",
            "+2027-06-30 expired -"
        ]
    );
}

#[tokio::test]
async fn next_steps_of_a_list_are_those_of_the_timeline() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, &minimal_plan("pro")).await;
    let user = api
        .create("/users", &json!({"email": "ada@example.com"}))
        .await;
    let mut ids = Vec::new();
    for status in ["active", "past_due", "paused", "cancelled"] {
        let body = json!({"user_id": user["id"], "subscription_plan_id": plan, "status": status});
        let subscription = api.create("/subscriptions", &body).await;
        ids.push(subscription["id"].as_str().unwrap().to_owned());
    }
    let timeline = format!("/users/{}/timeline", user["id"].as_str().unwrap());
    let timeline = api.get_json(&timeline).await;
    let path = format!(
        "/subscriptions/next-steps?subscription_id={}",
        ids.join(",")
    );
    let steps = api.get_json(&path).await;
    let steps = steps["data"].as_array().unwrap();
    assert_eq!(steps.len(), ids.len());
    for step in steps {
        let mut listed = timeline["subscriptions"].as_array().unwrap().iter();
        let same = listed.find(|listed| listed["id"] == step["subscription_id"]);
        assert_eq!(step["next"], same.unwrap()["next"]);
        assert!(step["next"][0]["sentence"].is_string());
    }
    for query in ["", "?subscription_id=x", "?subscription_id=sub_1&limit=1"] {
        let response = api.get(&format!("/subscriptions/next-steps{query}")).await;
        response.assert_problem(400, "invalid_parameter");
    }
}
