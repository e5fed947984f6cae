//! `POST /subscriptions`

use perennial_domain::{BillingCycle, SubscriptionStatus};
use serde_json::{Value, json};

use super::{SUBSCRIPTIONS, SubscriptionFixture, create_plan, record_path};
use crate::subscription_plans::minimal_plan;

#[tokio::test]
async fn omitted_fields_come_from_the_plan() {
    let fixture = SubscriptionFixture::start().await;
    let created = fixture
        .subscribe(json!({"starts_at": "2027-01-31T09:30:00.123456789+01:00"}))
        .await;
    let expected = json!({
        "id": created["id"], "user_id": fixture.user, "external_user_id": null, "subscription_plan_id": fixture.plan,
        "subscription_plan_slug": "pro", "external_subscription_id": null, "metadata": {},
        "billing_cycle": "monthly", "quantity": 1, "status": "active", "is_active": false, "suspended": false,
        "lifecycle": "recorded", "renews_at": "2027-02-28T08:30:00.123456Z", "starts_at": "2027-01-31T08:30:00.123456Z",
        "ends_at": null, "current_period_starts_at": null, "current_period_ends_at": null, "free_until": null, "paid_until": null, "credit": null,
        "amount_due": null, "price": 19.99, "currency": "USD",
        "created_at": created["created_at"], "updated_at": created["created_at"],
    });
    assert_eq!(created, expected);
    let read = fixture.api.get(&record_path(&created)).await;
    assert_eq!(read.json(), created);
    assert!(!read.header("etag").is_empty());
    assert_eq!(fixture.events(&created).await, ["subscription.created"]);
    let now = fixture.subscribe(json!({})).await;
    assert_eq!(
        (&now["is_active"], &now["starts_at"]),
        (&json!(true), &now["created_at"])
    );
}

#[tokio::test]
async fn all_cycles_statuses_and_aliases_are_accepted() {
    let fixture = SubscriptionFixture::start().await;
    for cycle in BillingCycle::ALL {
        let created = fixture
            .subscribe(json!({"billing_cycle": cycle.as_str().to_uppercase()}))
            .await;
        assert_eq!(created["billing_cycle"], cycle.as_str());
        assert_eq!(
            created["renews_at"].is_null(),
            cycle == BillingCycle::Lifetime
        );
        let plan_cycle = cycle == BillingCycle::Monthly;
        assert_eq!(
            (created["price"].is_null(), created["currency"].is_null()),
            (!plan_cycle, !plan_cycle)
        );
    }
    let end = "2099-01-01T00:00:00Z";
    let words = SubscriptionStatus::ALL.map(|status| (status.as_str(), status));
    for (word, status) in words.into_iter().chain(SubscriptionStatus::ALIASES) {
        let fields = match status {
            SubscriptionStatus::Cancelled => json!({"status": word, "ends_at": end}),
            _ => json!({"status": word}),
        };
        let created = fixture.subscribe(fields).await;
        assert_eq!(created["status"], status.as_str(), "{word}");
        assert_eq!(created["is_active"], status.gives_access(), "{word}");
    }
}

/// The price and the quantity can differ from the plan's.
#[tokio::test]
async fn price_and_quantity_are_stored() {
    let fixture = SubscriptionFixture::start().await;
    let created = fixture
        .subscribe(json!({"price": "12.50", "quantity": 3}))
        .await;
    assert_eq!(
        (
            &created["price"],
            &created["quantity"],
            &created["currency"]
        ),
        (&json!(12.5), &json!(3), &json!("USD"))
    );
    let other_cycle = json!({"price": 100, "billing_cycle": "yearly"});
    let created = fixture.subscribe(other_cycle).await;
    assert_eq!(
        (&created["price"], &created["currency"]),
        (&json!(100.0), &json!("USD"))
    );
}

/// A status in the same body decides about access, and the start may be in the future.
#[tokio::test]
async fn is_active_agrees_with_status_and_start() {
    let fixture = SubscriptionFixture::start().await;
    for status in ["pending", "paused", "unpaid", "expired"] {
        let fields = json!({"status": status, "is_active": true});
        let created = fixture.subscribe(fields).await;
        assert_eq!(
            (&created["status"], &created["is_active"]),
            (&json!(status), &json!(false))
        );
    }
    let later = json!({"is_active": true, "starts_at": "2099-01-01T00:00:00Z"});
    let created = fixture.subscribe(later).await;
    assert_eq!(
        (
            &created["status"],
            &created["is_active"],
            &created["suspended"]
        ),
        (&json!("active"), &json!(false), &json!(false))
    );
    let suspended = fixture.subscribe(json!({"is_active": false})).await;
    assert_eq!(suspended["suspended"], true);
}

/// A plan's trial is the default once per user. It ends at the renewal.
#[tokio::test]
async fn plan_with_trial_days_starts_on_trial_once() {
    let fixture = SubscriptionFixture::start().await;
    let mut plan = minimal_plan("trial");
    plan["trial_days"] = json!(10);
    let plan = create_plan(&fixture.api, &plan).await;
    let fields = json!({"subscription_plan_id": plan, "starts_at": "2027-01-31T00:00:00Z"});
    let first = fixture.subscribe(fields.clone()).await;
    assert_eq!(
        (&first["status"], &first["renews_at"]),
        (&json!("on_trial"), &json!("2027-02-10T00:00:00.000000Z"))
    );
    let second = fixture.subscribe(fields).await;
    assert_eq!(
        (&second["status"], &second["renews_at"]),
        (&json!("active"), &json!("2027-02-28T00:00:00.000000Z"))
    );
}

#[tokio::test]
async fn past_end_is_stored_as_expired() {
    let fixture = SubscriptionFixture::start().await;
    let ended = fixture
        .subscribe(json!({"ends_at": "2020-01-01T00:00:00Z"}))
        .await;
    assert_eq!(ended["status"], "expired");
    assert_eq!(
        ended["starts_at"], "2020-01-01T00:00:00.000000Z",
        "not after its end"
    );
    let count = "SELECT count(*) FROM subscriptions WHERE status = 'expired'";
    assert_eq!(fixture.service.count(count).await, 1);
}

/// Malformed input: 21, 22, 23, 24, 37, 52.
#[tokio::test]
async fn all_invalid_fields_are_reported() {
    let fixture = SubscriptionFixture::start().await;
    let assert_rejected = async |fields: Value, expected: &[&str]| {
        let response = fixture.api.post(SUBSCRIPTIONS, &fields.to_string()).await;
        assert_eq!(response.status, 422, "{fields}: {}", response.text);
        assert_eq!(response.field_errors(), expected, "{fields}");
    };
    assert_rejected(
        json!({}),
        &["/user_id required", "/subscription_plan_id required"],
    )
    .await;
    assert_rejected(
        json!({"user_id": fixture.plan, "subscription_plan_id": null, "external_subscription_id": " ", "billing_cycle": 1,
            "status": "activ", "is_active": "yes", "starts_at": "now", "renews_at": 5, "ends_at": "2027-02-30T00:00:00Z",
            "flavor": "red"}),
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
            "/flavor unknown_field",
        ],
    )
    .await;
    let with = |extra| fixture.fields(&extra);
    let (start, before) = ("2027-01-31T00:00:00Z", "2027-01-30T00:00:00Z");
    assert_rejected(
        with(json!({"starts_at": start, "renews_at": before, "ends_at": before})),
        &[
            "/renews_at inconsistent_dates",
            "/ends_at inconsistent_dates",
        ],
    )
    .await;
    let lifetime = json!({"billing_cycle": "lifetime", "renews_at": start});
    assert_rejected(with(lifetime), &["/renews_at inconsistent_dates"]).await;
    let expired = json!({"status": "expired", "ends_at": "2099-01-01T00:00:00Z"});
    assert_rejected(with(expired), &["/ends_at inconsistent_status"]).await;
    let ended = json!({"is_active": true, "ends_at": "2020-01-01T00:00:00Z"});
    assert_rejected(with(ended), &["/is_active inconsistent_status"]).await;
    for (field, value, code) in [
        ("quantity", json!(0), "out_of_range"),
        ("quantity", json!(100_001), "out_of_range"),
        ("quantity", json!(1.5), "wrong_type"),
        ("quantity", json!("2"), "wrong_type"),
        ("price", json!(-1), "out_of_range"),
        ("price", json!("0.001"), "amount_scale_invalid"),
        ("price", json!(true), "wrong_type"),
    ] {
        let error = format!("/{field} {code}");
        assert_rejected(with(json!({field: value})), &[&error]).await;
    }
    let large = json!({"price": 1_000_000, "quantity": 100_000});
    assert_rejected(with(large), &["/quantity out_of_range"]).await;
    // Null means absent.
    let nulls = json!({"external_subscription_id": null, "billing_cycle": null, "status": null, "is_active": null,
        "starts_at": null, "renews_at": null, "ends_at": null});
    assert_eq!(fixture.subscribe(nulls).await["status"], "active");
}

/// Malformed input: 79.
#[tokio::test]
async fn unknown_user_or_plan_is_rejected() {
    let fixture = SubscriptionFixture::start().await;
    let api = &fixture.api;
    let off = json!({"name": "Off", "slug": "off", "price": 1, "billing_cycle": "monthly", "is_active": false});
    let inactive = create_plan(api, &off).await;
    let deleted = create_plan(api, &minimal_plan("deleted")).await;
    assert_eq!(api.delete("/subscription-plans/deleted").await.status, 204);
    let unknown = "usr_01920000000070008000000000000001";
    for (field, id, code) in [
        ("user_id", unknown, "unknown_reference"),
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
        ("subscription_plan_id", inactive.as_str(), "plan_inactive"),
        ("subscription_plan_id", fixture.user.as_str(), "invalid_id"),
        (
            "user_id",
            "00000000-0000-0000-0000-000000000000",
            "invalid_id",
        ),
    ] {
        let mut fields = fixture.fields(&json!({}));
        fields[field] = json!(id);
        let response = api.post(SUBSCRIPTIONS, &fields.to_string()).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (422, code),
            "{}",
            response.text
        );
        assert_eq!(response.field_errors(), [format!("/{field} {code}")]);
    }
    // An id without its prefix is accepted.
    let bare = fixture.user.trim_start_matches("usr_").to_owned();
    let mut fields = fixture.fields(&json!({}));
    fields["user_id"] = json!(bare);
    let response = api.post(SUBSCRIPTIONS, &fields.to_string()).await;
    assert_eq!(response.json()["user_id"], fixture.user);
}

#[tokio::test]
async fn duplicate_external_id_is_rejected() {
    let fixture = SubscriptionFixture::start().await;
    let first = fixture
        .subscribe(json!({"external_subscription_id": "ext_1"}))
        .await;
    let fields = fixture
        .fields(&json!({"external_subscription_id": "ext_1"}))
        .to_string();
    let again = fixture.api.post(SUBSCRIPTIONS, &fields).await;
    assert_eq!(
        (again.status, again.problem().as_str()),
        (409, "duplicate_external_id")
    );
    assert_eq!(again.json()["existing_id"], first["id"]);
    let second = fixture.subscribe(json!({})).await;
    let taken = fixture
        .api
        .put(
            &record_path(&second),
            r#"{"external_subscription_id": "ext_1"}"#,
        )
        .await;
    assert_eq!(
        (taken.status, taken.problem().as_str()),
        (409, "duplicate_external_id")
    );
    assert_eq!(taken.json()["existing_id"], first["id"]);
    // Deleting the subscription frees the id.
    assert_eq!(fixture.api.delete(&record_path(&first)).await.status, 204);
    fixture
        .subscribe(json!({"external_subscription_id": "ext_1"}))
        .await;
}
