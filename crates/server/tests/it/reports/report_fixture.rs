//! A tenant in process with a fixed billing clock, and its reports.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::harness::{
    api::ApiClient,
    process::run_ok,
    service::{InProcessService, Service},
};

/// Slug, price in USD, billing cycle and trial days.
const PLANS: [(&str, i32, &str, i32); 8] = [
    ("free", 0, "monthly", 0),
    ("small", 20, "monthly", 0),
    ("silver", 30, "monthly", 0),
    ("gold", 50, "monthly", 0),
    ("tried", 40, "monthly", 14),
    ("weekly", 10, "weekly", 0),
    ("gold-yearly", 500, "yearly", 0),
    ("large-yearly", 1_200, "yearly", 0),
];

/// A tenant whose subscriptions are recorded, with plans and a clock.
pub struct ReportFixture {
    service: InProcessService,
    pub api: ApiClient,
}

fn noon(day: &str) -> Timestamp {
    format!("{day}T12:00:00Z").parse().unwrap()
}

impl ReportFixture {
    /// Starts at noon of this day.
    pub async fn start(day: &str) -> Self {
        let service = Service::start_in_process_at(noon(day)).await;
        let api = service.api(&[]);
        for (slug, price, cycle, trial_days) in PLANS {
            let plan = json!({"name": slug, "slug": slug, "price": price, "currency": "USD", "billing_cycle": cycle,
                "trial_days": trial_days});
            api.create("/subscription-plans", &plan).await;
        }
        Self { service, api }
    }

    /// Moves the clock to noon of this day and applies due transitions.
    pub async fn advance(&self, day: &str) {
        self.set_time(noon(day)).await;
    }

    pub async fn set_time(&self, now: Timestamp) {
        self.service.server.set_time(now);
        self.service.server.catch_up().await;
    }

    /// Adds all changes to the sums, as the worker does each second, and reads a report.
    pub async fn report(&self, path: &str) -> Value {
        let app = &self.service.server.app;
        loop {
            let mut connection = app.db.home().unwrap().connection().await.unwrap();
            let tx = connection.begin();
            let now = app.billing_clock.now();
            let rolled = perennial::reports::roll_up(&tx, now, 1_000).await.unwrap();
            tx.commit().await.unwrap();
            if rolled == 0 {
                break;
            }
        }
        self.api.get_json(&format!("/reports/{path}")).await
    }

    /// Computes the sums again, as an operator does.
    pub fn rebuild(&self) {
        run_ok(&self.service.variables, &["report", "rebuild"]);
    }

    /// Returns the figures in USD at the end of a day.
    pub async fn level(&self, day: &str) -> Value {
        let path = format!("revenue?from={day}&to={day}&interval=day");
        let report = self.report(&path).await;
        assert_eq!(report["currencies"].as_array().unwrap().len(), 1);
        report["currencies"][0].clone()
    }

    /// Returns MRR in USD at the end of a day.
    pub async fn mrr(&self, day: &str) -> String {
        let level = self.level(day).await;
        level["closing"]["mrr"].as_str().unwrap().to_owned()
    }

    /// Returns the movements of a month, such as `new 20.00`, in alphabetical order. `filter` is a part of the query.
    pub async fn movements(&self, month: &str, filter: &str) -> Vec<String> {
        let path = format!("revenue?from={month}-01&to={month}-28&interval=month{filter}");
        let report = self.report(&path).await;
        let interval = &report["currencies"][0]["intervals"][0];
        let movements = interval["movements"].as_object().unwrap().iter();
        let moved = movements.filter(|(_, figures)| figures["arr"] != "0.00");
        moved
            .map(|(kind, figures)| format!("{kind} {}", figures["mrr"].as_str().unwrap()))
            .collect()
    }
}
