//! `GET /events?sort=-position` and `GET /events/{id}`.

use serde_json::{Value, json};

use super::feed::{create_plan, read_events};
use crate::harness::{api::ApiClient, process::run_ok, service::Service};

fn ids(events: &[Value]) -> Vec<&str> {
    let ids = events.iter().map(|event| event["id"].as_str().unwrap());
    ids.collect()
}

/// Reads all pages of a list with the newest events first.
async fn read_all(api: &ApiClient, query: &str) -> Vec<Value> {
    let list = format!("/events?sort=-position{query}");
    let mut events = Vec::new();
    let mut path = list.clone();
    loop {
        let page = api.get_json(&path).await;
        events.extend(page["data"].as_array().unwrap().clone());
        if page["has_more"] == false {
            return events;
        }
        path = format!("{list}&after={}", page["next_cursor"].as_str().unwrap());
    }
}

#[tokio::test]
async fn newest_first_list_is_the_reverse_of_the_log() {
    let service = Service::start().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, "pro").await;
    for price in 1..4 {
        let body = format!(r#"{{"price": {price}}}"#);
        let path = "/subscription-plans/pro";
        assert_eq!(api.put(path, &body).await.status, 200);
    }
    create_plan(&api, "team").await;
    let (mut all, _) = read_events(&api, 5).await;
    all.reverse();

    for query in ["", "&limit=1", "&limit=2", "&limit=5", "&after=now"] {
        if !query.starts_with("&after") {
            assert_eq!(read_all(&api, query).await, all, "{query}");
        }
        let first = api
            .get_json(&format!("/events?sort=-position{query}"))
            .await;
        assert_eq!(first["data"][0], all[0], "{query}");
    }
    let plan = plan["id"].as_str().unwrap();
    for limit in ["1", "2", "50"] {
        let of_plan = read_all(&api, &format!("&subject_id={plan}&limit={limit}")).await;
        assert_eq!(of_plan, all[1..], "{limit}");
        let of_type = read_all(&api, &format!("&types=plan.created&limit={limit}")).await;
        assert_eq!(
            ids(&of_type),
            [&all[0], &all[4]].map(|event| event["id"].as_str().unwrap())
        );
        let both = format!("&subject_id={plan}&types=plan.created&limit={limit}");
        assert_eq!(read_all(&api, &both).await, all[4..]);
    }
}

/// A page reads a limited part of the log, also of a tenant whose events are among those of operators.
#[tokio::test]
async fn rare_event_is_found_over_empty_pages() {
    let service = Service::start().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, "pro").await;
    let (events, _) = read_events(&api, 1).await;
    let last = events[0]["position"].as_i64().unwrap();
    let database = service.database.connect().await;
    let fill = format!(
        "WITH added AS (
            INSERT INTO events (tenant_id, at, id, kind, subject_id, data, xact, seq)
            SELECT tenant_id, now(), gen_random_uuid(), 'user.created', gen_random_uuid(), '{{}}', NULL, NULL
            FROM event_log_tenants, generate_series(1, 12000) RETURNING tenant_id, at, id, kind, subject_id)
         INSERT INTO event_log (tenant_id, position, recorded_at, at, event_id, kind, subject_id)
         SELECT tenant_id, {last} + row_number() OVER (), at, at, id, kind, subject_id FROM added;
         UPDATE event_log_tenants SET last_position = {last} + 12000"
    );
    database.batch_execute(&fill).await.unwrap();

    let first = api.get_json("/events?sort=-position&types=plan.*").await;
    assert_eq!(
        (&first["data"], &first["has_more"]),
        (&json!([]), &json!(true))
    );
    let found = read_all(&api, "&types=plan.*").await;
    assert_eq!(found, events);
    // By its record, it is found at once.
    let path = format!(
        "/events?sort=-position&subject_id={}",
        plan["id"].as_str().unwrap()
    );
    let page = api.get_json(&path).await;
    assert_eq!(
        (&page["data"], &page["has_more"]),
        (&json!(events), &json!(false))
    );
}

#[tokio::test]
async fn newest_first_list_rejects_what_it_cannot_do() {
    let service = Service::start().await;
    let api = service.api(&[]);
    create_plan(&api, "pro").await;
    create_plan(&api, "team").await;
    let (_, forwards) = read_events(&api, 2).await;
    let page = api.get_json("/events?sort=-position&limit=1").await;
    let backwards = page["next_cursor"].as_str().unwrap();

    // A cursor belongs to one order.
    for path in [
        format!("/events?sort=-position&after={forwards}"),
        format!("/events?after={backwards}"),
        format!("/events?sort=position&after={backwards}"),
    ] {
        api.get(&path).await.assert_problem(400, "invalid_cursor");
    }
    let stream = api.with("accept", "text/event-stream");
    for response in [
        api.get("/events?sort=-position&wait=1").await,
        stream.get("/events?sort=-position").await,
        api.get("/events?sort=newest").await,
    ] {
        response.assert_problem(400, "invalid_parameter");
        assert_eq!(response.json()["errors"][0]["pointer"], "?sort");
    }
    let database = service.database.connect().await;
    // Retention ends the list, and a restored log rejects the cursor.
    let remove = "DELETE FROM event_log WHERE kind = 'plan.created' AND position < (SELECT max(position) FROM event_log);
        UPDATE event_log_tenants SET removed_to = last_position - 1";
    database.batch_execute(remove).await.unwrap();
    let path = format!("/events?sort=-position&after={backwards}");
    let page = api.get_json(&path).await;
    assert_eq!(
        (&page["data"], &page["has_more"]),
        (&json!([]), &json!(false))
    );
    let restore = "UPDATE event_log_state SET epoch = gen_random_uuid()";
    database.batch_execute(restore).await.unwrap();
    let response = api.get(&path).await;
    response.assert_problem(409, "cursor_from_another_history");
}

#[tokio::test]
async fn event_is_read_by_its_id() {
    let service = Service::start().await;
    let api = service.api(&[]);
    create_plan(&api, "pro").await;
    let path = "/subscription-plans/pro";
    assert_eq!(api.put(path, r#"{"price": 12}"#).await.status, 200);
    let (events, _) = read_events(&api, 2).await;
    for event in &events {
        let id = event["id"].as_str().unwrap();
        let (_, digits) = id.split_once('_').unwrap();
        for id in [id, digits] {
            let response = api.get(&format!("/events/{id}")).await;
            assert_eq!(response.header("cache-control"), "no-store");
            assert_eq!(response.json(), *event);
        }
    }

    run_ok(&service.variables, &["tenant", "create", "--name", "other"]);
    let other = service.api(&["--tenant", "other"]);
    let id = events[0]["id"].as_str().unwrap();
    let response = other.get(&format!("/events/{id}")).await;
    response.assert_problem(404, "event_not_found");
    // Events of operators are in the log too, but not in the API.
    let database = service.database.connect().await;
    let operators =
        "SELECT replace(event_id::text, '-', '') FROM event_log WHERE kind LIKE 'tenant.%'";
    let row = database.query(operators, &[]).await.unwrap();
    let hidden: String = row[0].get(0);
    for id in [
        format!("evt_{hidden}"),
        "evt_0192f0c1a2b37c4d8e5f60718293a4b5".to_owned(),
        // No version 7, and the largest time.
        "evt_0192f0c1a2b34c4d8e5f60718293a4b5".to_owned(),
        "evt_ffffffffffff7c4d8e5f60718293a4b5".to_owned(),
        "pay_0192f0c1a2b37c4d8e5f60718293a4b5".to_owned(),
        "x".to_owned(),
    ] {
        let response = api.get(&format!("/events/{id}")).await;
        response.assert_problem(404, "event_not_found");
    }
}
