//! Expiry: reads, lists, filters and entitlements agree at every instant, before and after the end.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{SubscriptionFixture, record_path};

#[tokio::test]
async fn reads_lists_and_access_agree_at_the_end() {
    let (start, end): (Timestamp, Timestamp) = (
        "2090-01-01T00:00:00Z".parse().unwrap(),
        "2090-06-01T00:00:00.000001Z".parse().unwrap(),
    );
    let year = SignedDuration::from_hours(24 * 365);
    let fixture = SubscriptionFixture::start_at(start - year).await;
    let mut records = Vec::new();
    for status in [
        "active",
        "on_trial",
        "past_due",
        "cancelled",
        "paused",
        "unpaid",
        "pending",
    ] {
        let fields =
            json!({"status": status, "starts_at": start.to_string(), "ends_at": end.to_string()});
        records.push((status, fixture.subscribe(fields).await));
    }
    let tick = SignedDuration::from_micros(1);
    for (now, started, ended) in [
        (start - tick, false, false),
        (start, true, false),
        (end - tick, true, false),
        (end, true, true),
        (end + tick, true, true),
        (end + year, true, true),
    ] {
        fixture.service.server.set_time(now);
        for (status, record) in &records {
            let grants_access = ["active", "on_trial", "past_due", "cancelled"].contains(status);
            let shown = if ended { "expired" } else { status };
            let access = grants_access && started && !ended;
            let read = fixture.api.get_json(&record_path(record)).await;
            assert_eq!(
                (&read["status"], &read["is_active"]),
                (&json!(shown), &json!(access)),
                "{now} {status}"
            );
            let listed = async |query: &str| {
                let page = fixture
                    .api
                    .get_json(&format!("/subscriptions?limit=200&{query}"))
                    .await;
                let data = page["data"].as_array().unwrap().clone();
                data.into_iter().find(|item| item["id"] == record["id"])
            };
            assert_eq!(listed("").await, Some(read.clone()), "{now} {status}");
            for filter in [
                "active",
                "on_trial",
                "past_due",
                "cancelled",
                "paused",
                "unpaid",
                "pending",
                "expired",
            ] {
                let found = listed(&format!("status={filter}")).await;
                assert_eq!(
                    found.is_some(),
                    filter == shown,
                    "{now} {status} status={filter}"
                );
            }
            let entitled = fixture
                .api
                .get_json(&format!("/entitlements/{}", fixture.user))
                .await;
            let grants = entitled["subscriptions"].as_array().unwrap();
            let granted = grants.iter().any(|grant| grant["id"] == record["id"]);
            assert_eq!(granted, access, "{now} {status}: {entitled}");
            for filter in [true, false] {
                let found = listed(&format!("is_active={filter}")).await;
                assert_eq!(
                    found.is_some(),
                    filter == access,
                    "{now} {status} is_active={filter}"
                );
            }
        }
    }
}
