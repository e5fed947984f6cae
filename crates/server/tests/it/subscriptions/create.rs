//! `POST /subscriptions`

use perennial_domain::{BillingCycle, Status};
use serde_json::{Value, json};

use super::{SUBSCRIPTIONS, Stage, make_plan, path_of};
use crate::subscription_plans::minimal;

#[tokio::test]
async fn what_is_left_out_follows_from_the_plan() {
    let stage = Stage::start().await;
    let made = stage
        .subscribe(json!({"starts_at": "2027-01-31T09:30:00.123456789+01:00"}))
        .await;
    let expected = json!({
        "id": made["id"], "user_id": stage.user, "subscription_plan_id": stage.plan, "external_subscription_id": null,
        "billing_cycle": "monthly", "status": "active", "is_active": false, "renews_at": "2027-02-28T08:30:00.123456Z",
        "starts_at": "2027-01-31T08:30:00.123456Z", "ends_at": null, "price": 19.99, "currency": "USD",
        "created_at": made["created_at"], "updated_at": made["created_at"],
    });
    assert_eq!(made, expected);
    let read = stage.caller.get(&path_of(&made)).await;
    assert_eq!(read.json(), made);
    assert!(!read.header("etag").is_empty());
    assert_eq!(stage.events(&made).await, ["subscription.created"]);
    let now = stage.subscribe(json!({})).await;
    assert_eq!(
        (&now["is_active"], &now["starts_at"]),
        (&json!(true), &now["created_at"])
    );
}

#[tokio::test]
async fn every_cycle_every_status_every_word() {
    let stage = Stage::start().await;
    for cycle in BillingCycle::ALL {
        let made = stage
            .subscribe(json!({"billing_cycle": cycle.as_str().to_uppercase()}))
            .await;
        assert_eq!(made["billing_cycle"], cycle.as_str());
        assert_eq!(made["renews_at"].is_null(), cycle == BillingCycle::Lifetime);
        let plans_own = cycle == BillingCycle::Monthly;
        assert_eq!(
            (made["price"].is_null(), made["currency"].is_null()),
            (!plans_own, !plans_own)
        );
    }
    let end = "2099-01-01T00:00:00Z";
    let words = Status::ALL.map(|status| (status.as_str(), status));
    for (word, status) in words.into_iter().chain(Status::ALIASES) {
        let further = match status {
            Status::Cancelled => json!({"status": word, "ends_at": end}),
            _ => json!({"status": word}),
        };
        let made = stage.subscribe(further).await;
        assert_eq!(made["status"], status.as_str(), "{word}");
        assert_eq!(made["is_active"], status.gives_access(), "{word}");
    }
}

#[tokio::test]
async fn what_has_ended_is_stored_as_expired() {
    let stage = Stage::start().await;
    let ended = stage
        .subscribe(json!({"ends_at": "2020-01-01T00:00:00Z"}))
        .await;
    assert_eq!(ended["status"], "expired");
    assert_eq!(
        ended["starts_at"], "2020-01-01T00:00:00Z",
        "not after its end"
    );
    let count = "SELECT count(*) FROM subscriptions WHERE status = 'expired'";
    assert_eq!(stage.service.count(count).await, 1);
    let suspended = stage.subscribe(json!({"is_active": false})).await;
    assert_eq!(
        (&suspended["status"], &suspended["is_active"]),
        (&json!("active"), &json!(false))
    );
    let lifted = stage
        .caller
        .put(&path_of(&suspended), r#"{"is_active": true}"#)
        .await;
    assert_eq!(lifted.json()["is_active"], true);
}

/// Catalogue: 21, 22, 23, 24, 37, 52.
#[tokio::test]
async fn everything_that_is_wrong_at_once() {
    let stage = Stage::start().await;
    let refused = async |fields: Value, expected: &[&str]| {
        let answer = stage.caller.post(SUBSCRIPTIONS, &fields.to_string()).await;
        assert_eq!(answer.status, 422, "{fields}: {}", answer.text);
        assert_eq!(answer.field_errors(), expected, "{fields}");
    };
    refused(
        json!({}),
        &["/user_id required", "/subscription_plan_id required"],
    )
    .await;
    refused(
        json!({"user_id": stage.plan, "subscription_plan_id": null, "external_subscription_id": " ", "billing_cycle": 1,
            "status": "activ", "is_active": "yes", "starts_at": "now", "renews_at": 5, "ends_at": "2027-02-30T00:00:00Z",
            "colour": "red"}),
        &[
            "/user_id invalid_id",
            "/subscription_plan_id required",
            "/external_subscription_id blank",
            "/billing_cycle wrong_type",
            "/status unknown_value",
            "/is_active wrong_type",
            "/starts_at invalid_format",
            "/renews_at wrong_type",
            "/ends_at invalid_format",
            "/colour unknown_field",
        ],
    )
    .await;
    let with = |further| stage.fields(&further);
    let (start, before) = ("2027-01-31T00:00:00Z", "2027-01-30T00:00:00Z");
    refused(
        with(json!({"starts_at": start, "renews_at": before, "ends_at": before})),
        &[
            "/renews_at inconsistent_dates",
            "/ends_at inconsistent_dates",
        ],
    )
    .await;
    let lifetime = json!({"billing_cycle": "lifetime", "renews_at": start});
    refused(with(lifetime), &["/renews_at inconsistent_dates"]).await;
    let over = json!({"status": "expired", "ends_at": "2099-01-01T00:00:00Z"});
    refused(with(over), &["/ends_at inconsistent_status"]).await;
    for none in ["pending", "paused", "unpaid", "expired"] {
        let active = json!({"status": none, "is_active": true});
        refused(with(active), &["/is_active inconsistent_status"]).await;
    }
    // Null is the same as absent.
    let nulls = json!({"external_subscription_id": null, "billing_cycle": null, "status": null, "is_active": null,
        "starts_at": null, "renews_at": null, "ends_at": null});
    assert_eq!(stage.subscribe(nulls).await["status"], "active");
}

/// Catalogue: 79.
#[tokio::test]
async fn users_and_plans_that_are_not_there() {
    let stage = Stage::start().await;
    let caller = &stage.caller;
    let off = json!({"name": "Off", "slug": "off", "price": 1, "billing_cycle": "monthly", "is_active": false});
    let inactive = make_plan(caller, &off).await;
    let deleted = make_plan(caller, &minimal("deleted")).await;
    assert_eq!(
        caller.delete("/subscription-plans/deleted").await.status,
        204
    );
    let other = stage
        .service
        .command(&["tenant", "create", "--name", "other", "--json"]);
    assert!(other["id"].is_string());
    let foreigner = stage.service.caller(&["--tenant", "other"]);
    let theirs = make_plan(&foreigner, &minimal("theirs")).await;
    let nobody = "usr_01920000000070008000000000000001";
    for (field, id, code) in [
        ("user_id", nobody, "unknown_reference"),
        (
            "subscription_plan_id",
            "plan_01920000000070008000000000000001",
            "unknown_reference",
        ),
        (
            "subscription_plan_id",
            deleted.as_str(),
            "unknown_reference",
        ),
        ("subscription_plan_id", theirs.as_str(), "unknown_reference"),
        ("subscription_plan_id", inactive.as_str(), "plan_inactive"),
        ("subscription_plan_id", stage.user.as_str(), "invalid_id"),
        (
            "user_id",
            "00000000-0000-0000-0000-000000000000",
            "invalid_id",
        ),
    ] {
        let mut fields = stage.fields(&json!({}));
        fields[field] = json!(id);
        let answer = caller.post(SUBSCRIPTIONS, &fields.to_string()).await;
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (422, code),
            "{}",
            answer.text
        );
        assert_eq!(answer.field_errors(), [format!("/{field} {code}")]);
    }
    // What is theirs is not found by its id either.
    let made = stage.subscribe(json!({})).await;
    for answer in [
        foreigner.get(&path_of(&made)).await,
        foreigner.put(&path_of(&made), "{}").await,
        foreigner.delete(&path_of(&made)).await,
    ] {
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (404, "subscription_not_found")
        );
    }
    assert_eq!(foreigner.get(SUBSCRIPTIONS).await.json()["data"], json!([]));
    // A bare UUID is understood.
    let bare = stage.user.trim_start_matches("usr_").to_owned();
    let mut fields = stage.fields(&json!({}));
    fields["user_id"] = json!(bare);
    let answer = caller.post(SUBSCRIPTIONS, &fields.to_string()).await;
    assert_eq!(answer.json()["user_id"], stage.user);
}

#[tokio::test]
async fn an_external_id_is_one_subscriptions() {
    let stage = Stage::start().await;
    let first = stage
        .subscribe(json!({"external_subscription_id": "ext_1"}))
        .await;
    let fields = stage
        .fields(&json!({"external_subscription_id": "ext_1"}))
        .to_string();
    let again = stage.caller.post(SUBSCRIPTIONS, &fields).await;
    assert_eq!(
        (again.status, again.problem().as_str()),
        (409, "duplicate_external_id")
    );
    assert_eq!(again.json()["existing_id"], first["id"]);
    let second = stage.subscribe(json!({})).await;
    let taken = stage
        .caller
        .put(
            &path_of(&second),
            r#"{"external_subscription_id": "ext_1"}"#,
        )
        .await;
    assert_eq!(
        (taken.status, taken.problem().as_str()),
        (409, "duplicate_external_id")
    );
    assert_eq!(taken.json()["existing_id"], first["id"]);
    // Free again once it is deleted.
    assert_eq!(stage.caller.delete(&path_of(&first)).await.status, 204);
    stage
        .subscribe(json!({"external_subscription_id": "ext_1"}))
        .await;
}
