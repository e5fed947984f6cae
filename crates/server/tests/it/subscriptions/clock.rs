//! Time passes, and everybody sees the same: reads, lists, filters, access.
//!
//! The interface is put together here with a clock that is held still, so that it can be asked an instant before,
//! exactly at, and an instant after.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Stage, path_of};
use crate::harness::held::Held;

#[tokio::test]
async fn at_its_end_it_is_over_for_everybody() {
    let stage = Stage::start().await;
    let (_, client) = stage.service.make_client(&[]);
    let (start, end): (Timestamp, Timestamp) = (
        "2090-01-01T00:00:00Z".parse().unwrap(),
        "2090-06-01T00:00:00.000001Z".parse().unwrap(),
    );
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
        let further =
            json!({"status": status, "starts_at": start.to_string(), "ends_at": end.to_string()});
        records.push((status, stage.subscribe(further).await));
    }
    let at = Held::start(&stage.service.variables, &client, start).await;
    let tick = SignedDuration::from_micros(1);
    // Before it begins, at its begin, just before its end, at its end, just after, and long after.
    let year = SignedDuration::from_hours(24 * 365);
    for (now, begun, over) in [
        (start - tick, false, false),
        (start, true, false),
        (end - tick, true, false),
        (end, true, true),
        (end + tick, true, true),
        (end + year, true, true),
    ] {
        at.set(now);
        for (status, record) in &records {
            let gives = ["active", "on_trial", "past_due", "cancelled"].contains(status);
            let shown = if over { "expired" } else { status };
            let access = gives && begun && !over;
            let read = at.get(&path_of(record)).await;
            assert_eq!(
                (&read["status"], &read["is_active"]),
                (&json!(shown), &json!(access)),
                "{now} {status}"
            );
            let listed = async |query: &str| {
                let page = at.get(&format!("/subscriptions?limit=200&{query}")).await;
                let data = page["data"].as_array().unwrap().clone();
                data.into_iter().find(|one| one["id"] == record["id"])
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
            let entitled = at.get(&format!("/entitlements/{}", stage.user)).await;
            let grants = entitled["subscriptions"].as_array().unwrap();
            let granted = grants.iter().any(|one| one["id"] == record["id"]);
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
