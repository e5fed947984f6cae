//! Lists with `Accept: text/csv`.

use serde_json::json;

use crate::{
    harness::{api::ApiClient, service::Service},
    subscription_plans::minimal_plan,
    subscriptions::create_plan,
};

/// Returns the lines of a list, without those that quotes contain.
async fn lines(api: &ApiClient, path: &str) -> Vec<String> {
    let response = api.with("accept", "text/csv").get(path).await;
    assert_eq!(response.status, 200, "{}", response.text);
    let kind = response.header("content-type");
    assert_eq!(kind, "text/csv; charset=utf-8; header=present");
    response
        .text
        .split_terminator("\r\n")
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn lists_are_csv_with_the_fields_of_their_records() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    let plan = create_plan(&api, &minimal_plan("pro")).await;
    let user = json!({"external_user_id": "=1+1", "metadata": {"note": "a, \"b\""}});
    let user = api.create("/users", &user).await;
    let body = json!({"user_id": user["id"], "subscription_plan_id": plan});
    let subscription = api.create("/subscriptions", &body).await;
    let payment = json!({"subscription_id": subscription["id"], "amount": 19.9, "currency": "USD"});
    let payment = api.create("/subscription-payments", &payment).await;
    for (path, record) in [
        ("/users", &user),
        ("/subscriptions", &subscription),
        ("/payments", &payment),
    ] {
        let [header, row] = &lines(&api, path).await[..] else {
            panic!("{path}");
        };
        let mut columns: Vec<&str> = header.split(',').collect();
        assert_eq!(columns[0], "id");
        columns.sort_unstable();
        // A field that is missing from the columns, or from the record.
        let fields: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert_eq!(columns, fields, "{path}");
        assert!(row.starts_with(record["id"].as_str().unwrap()), "{row}");
        // The JSON is as before.
        assert_eq!(api.get_json(path).await["data"], json!([record]));
        let empty = format!("{path}?created_at[gte]=2099-01-01T00:00:00Z");
        assert_eq!(&lines(&api, &empty).await, std::slice::from_ref(header));
    }
    let users = lines(&api, "/users").await;
    assert!(
        users[1].contains(r#",'=1+1,,"{""note"":""a, \""b\""""}","#),
        "{}",
        users[1]
    );
    let payments = lines(&api, "/payments").await;
    assert!(payments[1].contains(",19.90,USD,"), "{}", payments[1]);
}

#[tokio::test]
async fn csv_has_all_rows_or_a_link_to_the_next_page() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    for number in 0..60 {
        let body = json!({"external_user_id": format!("customer-{number}")});
        api.create("/users", &body).await;
    }
    // More than a page of JSON.
    assert_eq!(lines(&api, "/users").await.len(), 61);
    let csv = api.with("accept", "text/csv");
    assert!(!csv.get("/users").await.headers.contains_key("link"));
    let mut path = "/users?limit=25&sort=-created_at".to_owned();
    let mut ids = Vec::new();
    loop {
        let response = csv.get(&path).await;
        let rows = response.text.lines().skip(1);
        ids.extend(rows.map(|row| row.split(',').next().unwrap().to_owned()));
        let Some(link) = response.headers.get("link") else {
            break;
        };
        let link = link.to_str().unwrap();
        let next = link.strip_prefix('<').unwrap().split('>').next().unwrap();
        next.clone_into(&mut path);
    }
    let all = api.get_json("/users?limit=200&sort=-created_at").await;
    let expected: Vec<&str> = { all["data"].as_array().unwrap().iter() }
        .map(|user| user["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, expected);
}
