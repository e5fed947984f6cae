//! The endpoints and commands of reports.

use std::time::{Duration, Instant};

use axum::http::Method;
use serde_json::{Value, json};

use crate::{
    harness::{
        api::ApiClient,
        process::{Server, run_err, run_ok},
        service::Service,
        wait_until,
    },
    subscription_plans::minimal_plan,
};

struct Shop {
    service: Service<Server>,
    api: ApiClient,
}

impl Shop {
    /// Starts a service with a user who pays 19.99 USD per month for `pro` and 990 JPY per year for `yen`.
    async fn start() -> Self {
        let service = Service::start().await;
        let api = service.api(&[]);
        let mut yen = minimal_plan("yen");
        yen["price"] = json!(990);
        yen["currency"] = json!("JPY");
        yen["billing_cycle"] = json!("yearly");
        let user = api
            .create("/users", &json!({"email": "payer@example.com"}))
            .await;
        for plan in [minimal_plan("pro"), yen] {
            let plan = api.create("/subscription-plans", &plan).await;
            let fields = json!({"user_id": user["id"], "subscription_plan_id": plan["id"]});
            api.create("/subscriptions", &fields).await;
        }
        Self { service, api }
    }

    async fn report(&self, path: &str) -> Value {
        self.api.get_json(path).await
    }
}

#[tokio::test]
async fn change_is_in_the_report_within_five_seconds() {
    let shop = Shop::start().await;
    let started = Instant::now();
    wait_until(
        "the report has both currencies",
        Duration::from_secs(5),
        async || {
            shop.report("/reports/revenue").await["currencies"]
                .as_array()
                .unwrap()
                .len()
                == 2
        },
    )
    .await;
    println!("visible after {:?}", started.elapsed());
    let report = shop
        .report("/reports/revenue?interval=day&currency=usd")
        .await;
    let usd = &report["currencies"][0];
    assert_eq!(usd["currency"], "USD");
    assert_eq!(usd["closing"]["mrr"], "19.99", "{usd}");
    assert_eq!(usd["closing"]["arr"], "239.88", "{usd}");
    assert_eq!(usd["plans"][0]["subscription_plan_slug"], "pro", "{usd}");
    let last = usd["intervals"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["opening"]["mrr"], "0.00", "{last}");
    assert_eq!(last["movements"]["new"]["mrr"], "19.99", "{last}");
    assert_eq!(last["movements"]["new"]["changes"], 1, "{last}");
    let definition = report["definitions"]["mrr"].as_str().unwrap();
    assert!(definition.contains("past_due"), "{definition}");

    let report = shop.report("/reports/revenue?plan=yen").await;
    let [yen] = report["currencies"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    // 990 ÷ 12 = 82.5 is rounded once; yen have no decimals.
    assert_eq!(yen["closing"]["mrr"], "83", "{yen}");
    assert_eq!(yen["closing"]["arr"], "990", "{yen}");
    let report = shop.report("/reports/revenue?billing_cycle=yearly").await;
    assert_eq!(
        report["currencies"].as_array().unwrap().len(),
        1,
        "{report}"
    );
}

#[tokio::test]
async fn reports_are_also_csv_and_commands() {
    let shop = Shop::start().await;
    wait_until(
        "the report has both currencies",
        Duration::from_secs(5),
        async || {
            shop.report("/reports/revenue").await["currencies"]
                .as_array()
                .unwrap()
                .len()
                == 2
        },
    )
    .await;
    for report in ["revenue", "churn", "trials", "cohorts", "payments"] {
        let csv = shop.api.with("accept", "text/csv");
        let response = csv.get(&format!("/reports/{report}")).await;
        assert_eq!(response.status, 200);
        let kind = response.header("content-type");
        assert!(kind.starts_with("text/csv"), "{kind}");
        let text = &response.text;
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(
            text.lines().all(|line| line.split(',').count() == columns),
            "{text}"
        );
        if report == "cohorts" {
            continue;
        }
        let variables = &shop.service.variables;
        assert_eq!(
            &run_ok(variables, &["report", report, "--csv"]),
            text,
            "{report}"
        );
        let json: Value =
            serde_json::from_str(&run_ok(variables, &["report", report, "--json"])).unwrap();
        assert!(json["definitions"].is_object(), "{json}");
        let chart = run_ok(variables, &["report", report]);
        assert!(
            chart.lines().all(|line| line.chars().count() <= 80),
            "{chart}"
        );
    }
    let chart = run_ok(
        &shop.service.variables,
        &["report", "revenue", "--currency", "USD"],
    );
    assert!(
        chart.starts_with("MRR in USD: 19.99, committed 19.99, 1 paying user"),
        "{chart}"
    );
    let error = run_err(
        &shop.service.variables,
        &["report", "revenue", "--plan", "nope"],
    );
    assert!(error.contains("no plan has the slug"), "{error}");
}

#[tokio::test]
async fn wrong_parameters_are_rejected_with_what_is_allowed() {
    let shop = Shop::start().await;
    for (query, expected) in [
        ("from=2026-02-30", "must be a day such as 2026-11-15"),
        ("from=20261115", "must be a day such as 2026-11-15"),
        ("interval=decade", "is not an interval"),
        ("from=2026-11-15&to=2026-11-14", "cannot be after `to`"),
        ("from=2000-01-01&interval=day", "more than 1100 intervals"),
        ("plan=unknown", "no plan has the slug"),
        ("currency=XXX", "is not a supported currency"),
        ("plans=pro", "did you mean"),
    ] {
        let response = shop.api.get(&format!("/reports/revenue?{query}")).await;
        response.assert_problem(400, "invalid_parameter");
        let problem = response.json().to_string();
        assert!(problem.contains(expected), "{query}: {problem}");
    }
    let response = shop.api.get("/reports/payments?plan=pro").await;
    response.assert_problem(400, "invalid_parameter");
    let (_, limited) = shop
        .service
        .create_client(&["--scope", "subscriptions:read"]);
    let limited = ApiClient::new(&shop.service.server.url).with("client-id", &limited);
    let response = limited.send(Method::GET, "/reports/churn", None).await;
    response.assert_problem(403, "insufficient_scope");
}
