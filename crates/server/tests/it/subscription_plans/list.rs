//! `GET /subscription-plans`

use serde_json::{Value, json};

use super::minimal;
use crate::harness::{
    api::{Answer, Api},
    process::run_ok,
    service::Service,
};

fn slugs(answer: &Answer) -> Vec<String> {
    let page = answer.json();
    let data = page["data"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", answer.text))
        .clone();
    data.iter()
        .map(|plan| plan["slug"].as_str().unwrap().to_owned())
        .collect()
}

async fn add(caller: &Api, slug: &str, change: Value) {
    let mut plan = minimal(slug);
    for (name, value) in change.as_object().unwrap() {
        plan[name] = value.clone();
    }
    assert_eq!(
        caller
            .post("/subscription-plans", &plan.to_string())
            .await
            .status,
        201
    );
}

/// All pages of a list, one after the other.
async fn walk(caller: &Api, query: &str, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = caller
            .get(&format!("/subscription-plans?limit={limit}{query}{cursor}"))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let found = slugs(&answer);
        let page = answer.json();
        let more = page["has_more"].as_bool().unwrap();
        assert_eq!(more, page["next_cursor"].is_string());
        assert!(if more {
            found.len() == limit
        } else {
            found.len() <= limit
        });
        all.extend(found);
        if !more {
            return all;
        }
        cursor = format!("&cursor={}", page["next_cursor"].as_str().unwrap());
    }
}

#[tokio::test]
async fn pages_orders_and_filters() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    assert_eq!(
        caller.get("/subscription-plans").await.json(),
        json!({"data": [], "has_more": false, "next_cursor": null})
    );
    for number in 0..7 {
        let change = json!({"tier": number % 3, "is_active": number != 4, "billing_cycle": if number < 5 { "monthly" } else { "yearly" }});
        add(&caller, &format!("p{number}"), change).await;
    }
    let all = ["p0", "p1", "p2", "p3", "p4", "p5", "p6"];
    let reversed: Vec<&str> = all.iter().rev().copied().collect();
    for limit in [1, 2, 3, 6, 7, 8, 200] {
        assert_eq!(walk(&caller, "", limit).await, all);
        assert_eq!(walk(&caller, "&sort=created_at", limit).await, all);
        assert_eq!(walk(&caller, "&sort=-created_at", limit).await, reversed);
        assert_eq!(
            walk(&caller, "&sort=tier", limit).await,
            ["p0", "p3", "p6", "p1", "p4", "p2", "p5"]
        );
        assert_eq!(
            walk(&caller, "&sort=-tier", limit).await,
            ["p5", "p2", "p4", "p1", "p6", "p3", "p0"]
        );
        assert_eq!(
            walk(&caller, "&tier=0,2", limit).await,
            ["p0", "p2", "p3", "p5", "p6"]
        );
        assert_eq!(walk(&caller, "&is_active=false", limit).await, ["p4"]);
        assert_eq!(walk(&caller, "&is_active=true,false", limit).await, all);
        assert_eq!(
            walk(&caller, "&billing_cycle=Year&tier=2", limit).await,
            ["p5"]
        );
    }
    // A record is the same in a list as by itself.
    let listed = caller.get("/subscription-plans?limit=1").await.json()["data"][0].clone();
    assert_eq!(listed, caller.get("/subscription-plans/p0").await.json());

    // Publishable clients see active plans, whatever they ask for.
    let browser = service.caller(&["--kind", "publishable"]);
    assert_eq!(
        walk(&browser, "", 2).await,
        ["p0", "p1", "p2", "p3", "p5", "p6"]
    );
    assert_eq!(
        walk(&browser, "&is_active=false", 2).await,
        Vec::<String>::new()
    );
    assert_eq!(walk(&browser, "&is_active=true,false", 4).await.len(), 6);
}

/// Plans that come and go between two pages: nothing that was there all the time is skipped or shown
/// twice.
#[tokio::test]
async fn a_list_that_changes_underneath() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    for number in 0..6 {
        add(&caller, &format!("p{number}"), json!({})).await;
    }
    let first = caller.get("/subscription-plans?limit=3").await;
    caller.delete("/subscription-plans/p1").await;
    caller.delete("/subscription-plans/p2").await;
    add(&caller, "p6", json!({})).await;
    let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
    let second = caller
        .get(&format!("/subscription-plans?limit=3&cursor={cursor}"))
        .await;
    assert_eq!(slugs(&second), ["p3", "p4", "p5"]);
}

/// Catalogue: 59.
#[tokio::test]
async fn a_cursor_belongs_to_its_list() {
    let service = Service::start().await;
    run_ok(&service.variables, &["tenant", "create", "--name", "acme"]);
    let (caller, other) = (
        service.caller(&["--tenant", "default"]),
        service.caller(&["--tenant", "acme"]),
    );
    let browser = service.caller(&["--tenant", "default", "--kind", "publishable"]);
    for number in 0..3 {
        add(&caller, &format!("p{number}"), json!({})).await;
        add(&other, &format!("p{number}"), json!({})).await;
    }
    let page = caller
        .get("/subscription-plans?limit=1&tier=0")
        .await
        .json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let go_on = async |caller: &Api, query: &str, cursor: &str| {
        caller
            .get(&format!(
                "/subscription-plans?limit=1{query}&cursor={cursor}"
            ))
            .await
    };
    assert_eq!(go_on(&caller, "&tier=0", cursor).await.status, 200);
    let mut altered = cursor.to_owned().into_bytes();
    for position in 0..altered.len() {
        let original = altered[position];
        altered[position] = if original == b'A' { b'B' } else { b'A' };
        let answer = go_on(&caller, "&tier=0", std::str::from_utf8(&altered).unwrap()).await;
        assert_eq!(
            answer.status, 400,
            "byte {position} was changed: {}",
            answer.text
        );
        altered[position] = original;
    }
    for (who, query, cursor) in [
        (&other, "&tier=0", cursor),
        (&browser, "&tier=0", cursor),
        (&caller, "", cursor),
        (&caller, "&tier=0&sort=-created_at", cursor),
        (&caller, "&tier=0", ""),
        (&caller, "&tier=0", "AAAA"),
        (&caller, "&tier=0", "%00"),
    ] {
        let answer = go_on(who, query, cursor).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (400, "invalid_cursor"),
            "{query} {cursor}"
        );
    }
}

#[tokio::test]
async fn parameters_are_refused_all_at_once() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let answer = caller
        .get("/subscription-plans?limit=0&sort=teir&tier=x,1,y&is_active=maybe&billing_cycle=montly&slug=a&limt=3")
        .await;
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (400, "invalid_parameter")
    );
    let mut errors = answer.field_errors();
    errors.sort();
    let expected = [
        "?billing_cycle",
        "?is_active",
        "?limit",
        "?limt",
        "?slug",
        "?sort",
        "?tier",
        "?tier",
    ];
    assert_eq!(
        errors,
        expected.map(|name| format!("{name} invalid_parameter"))
    );
    for suggestion in [
        r#"did you mean \"tier\"?"#,
        r#"did you mean \"monthly\"?"#,
        r#"did you mean \"limit\"?"#,
    ] {
        assert!(
            answer.text.contains(suggestion),
            "{suggestion}: {}",
            answer.text
        );
    }
    for query in [
        "limit=-1",
        "limit=201",
        "limit=1e9",
        "limit=",
        "limit=1&limit=2",
        "tier=",
        "tier=99999999999",
        "sort=price",
        "cursor[]=x",
        &format!("tier={}", ",".repeat(10_000)),
    ] {
        let answer = caller.get(&format!("/subscription-plans?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
    }
}

/// The last page of a long list costs what the first does.
#[tokio::test]
async fn the_last_page_costs_what_the_first_does_alone() {
    let service = Service::start().await;
    let caller = service.caller(&[]);
    let database = service.database.connect().await;
    database
        .batch_execute(
            "INSERT INTO subscription_plans (tenant_id, id, slug, name, variants, price_minor, currency, billing_cycle,
                node_quota, most_popular, tier, is_active, created_at, updated_at)
             SELECT tenant_id, gen_random_uuid(), 'p' || n, 'P', '{}', 1999, 'USD', 'monthly',
                0, false, n % 1000, true, timestamptz '2020-01-01Z' + n * interval '1 minute', now()
             FROM tenants, generate_series(1, 100000) AS n;
             ANALYZE subscription_plans",
        )
        .await
        .unwrap();
    for order in ["created_at", "-created_at", "tier", "-tier"] {
        let first = format!("/subscription-plans?sort={order}&limit=50");
        let mut path = format!("/subscription-plans?sort={order}&limit=200");
        let mut pages = 1;
        let last = loop {
            let page = caller.get(&path).await.json();
            let Some(cursor) = page["next_cursor"].as_str() else {
                break path;
            };
            pages += 1;
            path = format!("/subscription-plans?sort={order}&limit=200&cursor={cursor}");
        };
        assert_eq!(pages, 500);
        let last = last.replace("limit=200", "limit=50");
        // In turns, so that whatever else the machine does falls on both.
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..31 {
            for (path, times) in [&first, &last].into_iter().zip(&mut times) {
                let begun = std::time::Instant::now();
                let answer = caller.get(path).await;
                assert_eq!(slugs(&answer).len(), 50);
                times.push(begun.elapsed());
            }
        }
        let [first, last] = times.map(|mut times| {
            times.sort_unstable();
            times[15]
        });
        println!("{order}: first page {first:?}, last {last:?}");
        assert!(
            last < first * 3 / 2,
            "{order}: first page {first:?}, last {last:?}"
        );
    }
}
