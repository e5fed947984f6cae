//! `examples/my-subscription.mjs`: the page of a signed-in user.

use serde_json::json;

use super::{ExampleServer, script};
use crate::subscriptions::SubscriptionFixture;

impl ExampleServer {
    /// Requests the page with an access token. Returns the status, the target of a redirect and the text.
    async fn page(&self, access_token: Option<&str>) -> (u16, String, String) {
        let mut request = self.http.get(format!("{}/my-subscription", self.url));
        if let Some(token) = access_token {
            request = request.header("cookie", format!("theme=dark; access={token}"));
        }
        let response = request.send().await.unwrap();
        let location = response.headers().get("location");
        let location = location.map_or(String::new(), |value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        (status, location, response.text().await.unwrap())
    }
}

#[tokio::test]
async fn my_subscription_page_shows_what_the_user_has() {
    let mut fixture = SubscriptionFixture::start_server().await;
    let plan = json!({"name": "Team <& more>", "slug": "team", "price": 49, "billing_cycle": "yearly", "tier": 3,
        "node_quota": -1, "features": "SSO, Audit log"});
    fixture.api.create("/subscription-plans", &plan).await;
    let tokens = fixture.api.sign_up("grace@example.com").await;
    let of_grace = |extra: serde_json::Value| {
        let mut fields = extra;
        fields["user_id"] = json!(tokens.user());
        fields
    };
    let active = of_grace(
        json!({"subscription_plan_slug": "team", "price": 45.5, "quantity": 3,
        "renews_at": "2031-05-06T12:00:00Z"}),
    );
    let active = fixture.api.create("/subscriptions", &active).await;
    let cancelled = of_grace(
        json!({"subscription_plan_slug": "pro", "status": "cancelled",
        "ends_at": "2032-01-02T12:00:00Z"}),
    );
    fixture.api.create("/subscriptions", &cancelled).await;
    let paid = json!({"amount": 136.5, "status": "completed", "paid_at": "2026-05-06T12:00:00Z"});
    let payment = fixture.pay(&active, paid).await;
    let path = format!("/subscription-payments/{}", payment["id"].as_str().unwrap());
    let partly = r#"{"status": "partially_refunded", "refunded_amount": 6.5}"#;
    assert_eq!(fixture.api.put(&path, partly).await.status, 200);
    // Records of another user.
    let other = fixture
        .subscribe(json!({"renews_at": "2033-03-03T12:00:00Z"}))
        .await;
    fixture.pay(&other, json!({"amount": 77.77})).await;

    let mut command = script(&fixture.service, "node", "my-subscription.mjs");
    let server = ExampleServer::start(&mut command).await;
    let (status, _, page) = server.page(Some(tokens.access())).await;
    assert_eq!(status, 200, "{page}");
    for expected in [
        "<strong>Team &#60;&#38; more&#62;</strong> × 3",
        "$45.50 yearly. Active",
        "renews on May 6, 2031",
        "<strong>Pro</strong>",
        "$19.99 monthly. Cancelled",
        "until January 2, 2032",
        "Tier 3, nodes: unlimited",
        "<li>SSO</li><li>Audit log</li>",
        "May 6, 2026<td>$136.50<td>partially_refunded",
        "($6.50 refunded)",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for hidden in ["2033", "$77.77"] {
        assert!(!page.contains(hidden), "{hidden}: {page}");
    }

    // A publishable client shows the same.
    let (_, publishable) = fixture.service.create_client(&["--kind", "publishable"]);
    let mut command = script(&fixture.service, "node", "my-subscription.mjs");
    let by_publishable = ExampleServer::start(command.env("CLIENT_ID", publishable)).await;
    let shown = by_publishable.page(Some(tokens.access())).await;
    assert_eq!(shown, (200, String::new(), page));

    // A user without a subscription, and requests without a session.
    let newcomer = fixture.api.sign_up("alan@example.com").await;
    let (status, _, page) = server.page(Some(newcomer.access())).await;
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("You have no subscription."), "{page}");
    assert!(page.contains("You have no access"), "{page}");
    let logout = fixture.api.with_bearer(newcomer.access());
    let path = "/authentication/tokens/logout";
    let logout = logout.send(reqwest::Method::POST, path, None).await;
    assert_eq!(logout.status, 200, "{}", logout.text);
    for token in [None, Some("nonsense"), Some(newcomer.access())] {
        let (status, location, _) = server.page(token).await;
        assert_eq!((status, location.as_str()), (303, "/sign-in"), "{token:?}");
    }

    // Without the service, the user stays signed in.
    fixture.service.server.process.kill();
    let (status, ..) = server.page(Some(tokens.access())).await;
    assert_eq!(status, 503);
}
