//! The changes behind the figures of reports.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::harness::api::ApiClient;

const MOVEMENTS: [&str; 8] = [
    "new",
    "expansion",
    "contraction",
    "churned",
    "reactivated",
    "imported",
    "correction",
    "transferred",
];

/// Returns all changes of a list, page by page.
pub async fn list_changes(api: &ApiClient, query: &str, limit: usize) -> Vec<Value> {
    api.list_all("/reports/changes", query, limit).await
}

fn minor_units(text: &Value) -> i64 {
    text.as_str().unwrap().replace('.', "").parse().unwrap()
}

/// Checks that changes add up to the figures of the report of revenue, in each interval, and to those of trials.
pub async fn assert_changes_equal_reports(api: &ApiClient, period: &str) {
    for filter in ["", "&plan=pro", "&billing_cycle=yearly"] {
        let report = api
            .get_json(&format!("/reports/revenue?{period}{filter}"))
            .await;
        let changes = list_changes(api, &format!("{period}{filter}"), 200).await;
        let mut compared = 0;
        for currency in report["currencies"].as_array().unwrap() {
            for interval in currency["intervals"].as_array().unwrap() {
                let [from, to] = ["from", "to"].map(|name| interval[name].as_str().unwrap());
                for kind in MOVEMENTS {
                    let of_kind = changes.iter().filter(|change| {
                        let day = change["day"].as_str().unwrap();
                        change["kind"] == kind
                            && change["currency"] == currency["currency"]
                            && day >= from
                            && day <= to
                    });
                    let sum: i64 = of_kind.map(|change| minor_units(&change["arr"])).sum();
                    let figure = minor_units(&interval["movements"][kind]["arr"]);
                    assert_eq!(sum, figure, "{kind} {from} {filter}: {currency}");
                    compared += 1;
                }
            }
        }
        assert!(compared >= 8, "{report}");
    }
    let churned = list_changes(api, &format!("{period}&kind=churned"), 200).await;
    let mut all = list_changes(api, period, 3).await;
    let by_page = all.len();
    assert_eq!(
        by_page,
        list_changes(api, period, 200).await.len(),
        "the size of pages does not matter"
    );
    all.retain(|change| change["kind"] == "churned");
    let sort_key = |change: &Value| change.to_string();
    let mut churned_by_kind = churned.clone();
    churned_by_kind.sort_by_key(sort_key);
    all.sort_by_key(sort_key);
    assert_eq!(churned_by_kind, all);
    let days: Vec<&str> = churned
        .iter()
        .map(|change| change["day"].as_str().unwrap())
        .collect();
    assert!(days.is_sorted_by(|a, b| a >= b), "{days:?}");

    let trials = api.get_json(&format!("/reports/trials?{period}")).await;
    let mut expected: BTreeMap<&str, i64> = BTreeMap::new();
    for interval in trials["intervals"].as_array().unwrap() {
        for name in ["started", "converted", "lost"] {
            *expected.entry(name).or_default() += interval[name].as_i64().unwrap();
        }
    }
    for (name, count) in expected {
        let rows = list_changes(api, &format!("{period}&kind=trial_{name}"), 200).await;
        let sum: i64 = rows
            .iter()
            .map(|change| change["subscriptions"].as_i64().unwrap())
            .sum();
        assert_eq!(sum, count, "trials that are {name}");
    }
    for cohort in trials["cohorts"].as_array().unwrap() {
        let month = cohort["month"].as_str().unwrap();
        let query = format!("{period}&started_month={month}&kind=trial_lost,trial_converted");
        let rows = list_changes(api, &query, 200).await;
        for name in ["converted", "lost"] {
            let of_kind = rows
                .iter()
                .filter(|change| change["kind"] == format!("trial_{name}"));
            let sum: i64 = of_kind
                .map(|change| change["subscriptions"].as_i64().unwrap())
                .sum();
            let count = cohort[name].as_i64().unwrap();
            assert_eq!(sum, count, "trials of {month} that are {name}");
        }
    }
}
