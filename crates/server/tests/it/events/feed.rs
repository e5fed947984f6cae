//! `GET /events`: pages, filters, cursors, waiting and its limits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    harness::{api::ApiClient, process::run_ok, service::Service, wait_until},
    subscription_plans::minimal_plan,
};

/// Until an event that was just committed must be readable.
pub const READABLE_TIMEOUT: Duration = Duration::from_secs(10);

pub async fn create_plan(api: &ApiClient, slug: &str) -> Value {
    api.create("/subscription-plans", &minimal_plan(slug)).await
}

/// Reads events until there are this many, and returns the last page's cursor too.
pub async fn read_events(api: &ApiClient, count: usize) -> (Vec<Value>, String) {
    let mut events = Vec::new();
    let mut cursor = String::new();
    wait_until("events are readable", READABLE_TIMEOUT, async || {
        let after = match cursor.as_str() {
            "" => String::new(),
            cursor => format!("?after={cursor}"),
        };
        let page = api.get_json(&format!("/events{after}")).await;
        events.extend(page["data"].as_array().unwrap().clone());
        page["next_cursor"]
            .as_str()
            .unwrap()
            .clone_into(&mut cursor);
        events.len() >= count
    })
    .await;
    assert_eq!(events.len(), count);
    (events, cursor)
}

fn subjects(events: &[Value]) -> Vec<&str> {
    let subjects = events.iter().map(|event| event["subject_id"].as_str());
    subjects.map(Option::unwrap).collect()
}

#[tokio::test]
async fn pages_continue_after_their_cursor() {
    let service = Service::start().await;
    let (client, value) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &value);
    let mut plans = Vec::new();
    for number in 0..5 {
        let plan = create_plan(&api, &format!("plan-{number}")).await;
        plans.push(plan["id"].as_str().unwrap().to_owned());
    }
    read_events(&api, 5).await;

    let mut seen = Vec::new();
    let mut path = "/events?limit=2".to_owned();
    let cursor = loop {
        let response = api.get(&path).await;
        assert_eq!(response.header("cache-control"), "no-store");
        let page = response.json();
        let events = page["data"].as_array().unwrap();
        assert!(events.len() <= 2);
        seen.extend(events.clone());
        let cursor = page["next_cursor"].as_str().unwrap().to_owned();
        if page["has_more"] == false {
            break cursor;
        }
        path = format!("/events?limit=2&after={cursor}");
    };
    assert_eq!(subjects(&seen), plans);
    let positions: Vec<i64> = seen
        .iter()
        .map(|event| event["position"].as_i64().unwrap())
        .collect();
    assert!(positions.is_sorted());
    let event = &seen[0];
    assert_eq!(event["type"], "plan.created");
    assert_eq!(event["actor"], json!({"type": "client", "id": client}));
    assert_eq!(event["data"]["slug"], "plan-0");
    assert!(event["id"].as_str().unwrap().starts_with("evt_"));
    assert!(event["request_id"].is_string());
    assert!(event["recorded_at"].as_str() >= event["occurred_at"].as_str());

    // The end of the log is a cursor too.
    let empty = api.get_json(&format!("/events?after={cursor}")).await;
    assert_eq!(
        (&empty["data"], &empty["has_more"]),
        (&json!([]), &json!(false))
    );
    let now = api.get_json("/events?after=now").await;
    assert_eq!(now["data"], json!([]));
    let plan = create_plan(&api, "later").await;
    for cursor in [&cursor, now["next_cursor"].as_str().unwrap()] {
        let next = api
            .get_json(&format!("/events?after={cursor}&wait=10"))
            .await;
        let next = next["data"].as_array().unwrap().clone();
        assert_eq!(subjects(&next), [plan["id"].as_str().unwrap()]);
    }
}

#[tokio::test]
async fn filters_select_types_and_subjects() {
    let service = Service::start().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, "pro").await;
    let path = "/subscription-plans/pro";
    assert_eq!(api.put(path, r#"{"price": 12}"#).await.status, 200);
    let user = api
        .create("/users", &json!({"email": "ada@example.com"}))
        .await;
    create_plan(&api, "team").await;
    let (all, _) = read_events(&api, 4).await;
    // Events about the tenant and its clients are for operators.
    let kinds = |events: &Value| -> Vec<String> {
        let events = events["data"].as_array().unwrap().iter();
        events
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(all.iter().all(|event| event["type"] != "tenant.created"));
    assert_eq!(
        service
            .count("SELECT count(*) FROM events WHERE kind LIKE 'tenant.%'")
            .await,
        1
    );

    let plans = api.get_json("/events?types=plan.*").await;
    assert_eq!(
        kinds(&plans),
        ["plan.created", "plan.updated", "plan.created"]
    );
    let some = api.get_json("/events?types=plan.updated,%20user.*").await;
    assert_eq!(kinds(&some), ["plan.updated", "user.created"]);
    let plan = plan["id"].as_str().unwrap();
    let (_, digits) = plan.split_once('_').unwrap();
    for id in [plan, digits] {
        let events = api.get_json(&format!("/events?subject_id={id}")).await;
        assert_eq!(kinds(&events), ["plan.created", "plan.updated"], "{id}");
    }
    let both = format!(
        "/events?types=user.*&subject_id={}",
        user["id"].as_str().unwrap()
    );
    assert_eq!(kinds(&api.get_json(&both).await), ["user.created"]);

    // A cursor does not depend on the filters.
    let first = api.get_json("/events?types=plan.*&limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = api
        .get_json(&format!("/events?types=user.created&after={cursor}"))
        .await;
    assert_eq!(kinds(&rest), ["user.created"]);
}

#[tokio::test]
async fn invalid_parameters_are_reported_together() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let path = "/events?types=plan.craeted,tenant.created,plan.*&subject_id=evt_1&wait=26&limit=0&cursor=x";
    let response = api.get(path).await;
    response.assert_problem(400, "invalid_parameter");
    let errors = response.json()["errors"].clone();
    let pointers: Vec<&str> = errors
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(
        pointers,
        [
            "?types",
            "?types",
            "?subject_id",
            "?limit",
            "?wait",
            "?cursor"
        ]
    );
    let [typo, operators] = [&errors[0], &errors[1]];
    assert_eq!(
        typo["message"],
        r#""plan.craeted" is not an event type; did you mean "plan.created"?"#
    );
    for error in [typo, operators] {
        let allowed = error["allowed"].as_array().unwrap();
        assert!(allowed.contains(&json!("subscription.*")));
        assert!(!allowed.contains(&json!("tenant.created")));
    }
    for wait in ["-1", "x", "1.5"] {
        let response = api.get(&format!("/events?wait={wait}")).await;
        response.assert_problem(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn cursor_of_another_tenant_is_invalid() {
    let service = Service::start().await;
    let api = service.api(&[]);
    create_plan(&api, "pro").await;
    let (_, cursor) = read_events(&api, 1).await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let other = service.api(&["--tenant", "other"]);
    let mut altered = cursor.clone().into_bytes();
    altered[0] = if altered[0] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).unwrap();
    for (api, cursor) in [
        (&other, cursor.as_str()),
        (&api, "abc"),
        (&api, ""),
        (&api, &altered),
    ] {
        let response = api.get(&format!("/events?after={cursor}")).await;
        response.assert_problem(400, "invalid_cursor");
    }
    assert_eq!(other.get_json("/events").await["data"], json!([]));
    assert_eq!(
        api.get_json(&format!("/events?after={cursor}")).await["data"],
        json!([])
    );
}

/// A restored database has fewer events, or other ones at the same positions.
#[tokio::test]
async fn cursor_of_another_history_is_rejected() {
    let service = Service::start().await;
    let api = service.api(&[]);
    create_plan(&api, "pro").await;
    create_plan(&api, "team").await;
    let (_, cursor) = read_events(&api, 2).await;
    let path = format!("/events?after={cursor}");
    let database = service.database.connect().await;
    let run = async |sql: &str| database.batch_execute(sql).await.unwrap();

    run("UPDATE event_log_tenants SET last_position = last_position - 1").await;
    api.get(&path)
        .await
        .assert_problem(409, "cursor_from_another_history");
    run("UPDATE event_log_tenants SET last_position = last_position + 1").await;
    assert_eq!(api.get(&path).await.status, 200);

    run("UPDATE event_log_state SET epoch = gen_random_uuid()").await;
    for path in [path.clone(), format!("{path}&wait=5")] {
        let started = Instant::now();
        let response = api.get(&path).await;
        response.assert_problem(409, "cursor_from_another_history");
        assert!(started.elapsed() < Duration::from_secs(2));
    }
    assert_eq!(
        api.get_json("/events").await["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn cursor_before_removed_events_is_rejected() {
    let service = Service::start().await;
    let api = service.api(&[]);
    for slug in ["a", "b", "c"] {
        create_plan(&api, slug).await;
    }
    let (events, _) = read_events(&api, 3).await;
    let first = api.get_json("/events?limit=1").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = events[1]["position"].as_i64().unwrap();
    let database = service.database.connect().await;
    let remove = format!(
        "DELETE FROM event_log WHERE position <= {second};
         UPDATE event_log_tenants SET removed_to = {second}"
    );
    database.batch_execute(&remove).await.unwrap();
    let response = api.get(&format!("/events?after={cursor}")).await;
    response.assert_problem(410, "events_removed");
    assert!(
        response.json()["detail"]
            .as_str()
            .unwrap()
            .contains(&format!("position {second} "))
    );
    // Without a cursor, the list starts with the oldest event.
    let oldest = api.get_json("/events").await;
    assert_eq!(oldest["data"], json!([events[2]]));
}

#[tokio::test]
async fn waiting_request_returns_with_the_next_event() {
    let service = Service::start().await;
    let api = service.api(&[]);
    let page = api.get_json("/events?after=now").await;
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();

    // Longer than other requests may take. It has no event.
    let started = Instant::now();
    let (idle, long) = (
        api.clone(),
        format!("/events?after={cursor}&types=user.*&wait=12"),
    );
    let idle = tokio::spawn(async move { idle.get_json(&long).await });
    // More waiting requests than database connections.
    let path = format!("/events?after={cursor}&wait=25");
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (api, path) = (api.clone(), path.clone());
            tokio::spawn(async move { api.get_json(&path).await })
        })
        .collect();
    wait_until("requests wait", READABLE_TIMEOUT, async || {
        service.server.metric("perennial_event_readers").await == Some(21.0)
    })
    .await;
    let created = Instant::now();
    let plan = create_plan(&api, "pro").await;
    for request in waiting {
        let page = request.await.unwrap();
        let events = page["data"].as_array().unwrap();
        assert_eq!(subjects(events), [plan["id"].as_str().unwrap()]);
    }
    let delay = created.elapsed();
    assert!(delay < Duration::from_secs(5), "{delay:?}");

    let idle = idle.await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(12));
    assert_eq!(
        (&idle["data"], &idle["has_more"]),
        (&json!([]), &json!(false))
    );
    // The cursor has passed the event that the filter excludes.
    let next = api
        .get_json(&format!(
            "/events?after={}",
            idle["next_cursor"].as_str().unwrap()
        ))
        .await;
    assert_eq!(next["data"], json!([]));
    assert_eq!(
        service.server.metric("perennial_event_readers").await,
        Some(0.0)
    );
    // Waiting does not count as response time.
    let series =
        "perennial_http_request_seconds_sum{method=\"GET\",route=\"/events\",status=\"200\"}";
    let seconds = service.server.metric(series).await.unwrap();
    assert!(seconds < 10.0, "{seconds}");
}

#[tokio::test]
async fn waiting_requests_end_when_the_service_stops() {
    let mut service = Service::start().await;
    let api = service.api(&[]);
    let waiting = {
        let api = api.clone();
        tokio::spawn(async move { api.get("/events?after=now&wait=25").await })
    };
    wait_until("the request waits", READABLE_TIMEOUT, async || {
        service.server.metric("perennial_event_readers").await == Some(1.0)
    })
    .await;
    let started = Instant::now();
    let stopped = service.server.process.stop().await;
    assert!(
        stopped && started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
    let response = waiting.await.unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.header("connection"), "close");
    let page = response.json();
    assert_eq!(page["data"], json!([]));
    // The cursor is valid for the next instance.
    assert!(page["next_cursor"].is_string());
}

#[tokio::test]
async fn waiting_requests_are_limited_per_tenant_and_process() {
    let service = Service::start_with(|variables| {
        variables.insert("PERENNIAL_EVENT_READERS", "3".to_owned());
        variables.insert("PERENNIAL_EVENT_READERS_PER_TENANT", "2".to_owned());
    })
    .await;
    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let api = service.api(&["--tenant", "default"]);
    let other = service.api(&["--tenant", "other"]);
    let path = "/events?after=now&wait=20";
    let mut waiting = Vec::new();
    for (api, count) in [(&api, 1.0), (&api, 2.0), (&other, 3.0)] {
        let api = api.clone();
        waiting.push(tokio::spawn(async move { api.get(path).await }));
        wait_until("the request waits", READABLE_TIMEOUT, async || {
            service.server.metric("perennial_event_readers").await == Some(count)
        })
        .await;
    }
    let stream = api.with("accept", "text/event-stream");
    for response in [api.get(path).await, stream.get("/events").await] {
        response.assert_problem(429, "rate_limited");
        assert_eq!(response.header("retry-after"), "5");
    }
    let response = other.get(path).await;
    response.assert_problem(503, "overloaded");
    assert_eq!(response.header("retry-after"), "5");
    let shed = "perennial_shed_total{by=\"event_readers_per_tenant\"}";
    assert_eq!(service.server.metric(shed).await, Some(2.0));
    // Requests that do not wait are not limited.
    assert_eq!(api.get("/events").await.status, 200);
    // A client that disconnects makes room at once.
    waiting.pop().unwrap().abort();
    wait_until("a permit is free", READABLE_TIMEOUT, async || {
        service.server.metric("perennial_event_readers").await == Some(2.0)
    })
    .await;
    let next = {
        let other = other.clone();
        tokio::spawn(async move { other.get("/events?after=now&wait=1").await })
    };
    assert_eq!(next.await.unwrap().status, 200);
    for request in waiting {
        request.abort();
    }
}
