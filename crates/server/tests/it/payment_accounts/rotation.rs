//! Two secrets while an account's secret is rotated.

use jiff::SignedDuration;

use super::{STRIPE_SECRET, TestAccount, stripe_signature, subscription_event};
use crate::harness::service::InProcessService;

#[tokio::test]
async fn previous_secret_is_accepted_for_a_day() {
    let service = InProcessService::start_in_process_with_fixed_clock().await;
    let (api, clock) = (service.api(&[]), service.server.app.clock);
    let account = TestAccount::stripe(&api, &service.anonymous()).await;
    let status = async |secret: &str| {
        let body = subscription_event("evt_1", "sub_1").to_string();
        let header = stripe_signature(secret, clock.now().as_second(), body.as_bytes());
        account.send_with(&header, body.as_bytes()).await.status
    };
    let (first, second, third) = (STRIPE_SECRET, "whsec_second", "whsec_third");
    assert_eq!((status(first).await, status(second).await), (200, 401));
    let rotated = account.rotate(&api, second).await;
    assert!(
        rotated["previous_secret_expires_at"].is_string(),
        "{rotated}"
    );
    assert_eq!((status(first).await, status(second).await), (200, 200));

    let pass = |time| clock.set(clock.now().saturating_add(time).unwrap().as_microsecond());
    pass(SignedDuration::from_secs(24 * 3600 - 1));
    assert_eq!((status(first).await, status(second).await), (200, 200));
    // Each change is at least a microsecond later than the last.
    pass(SignedDuration::from_secs(2));
    assert_eq!((status(first).await, status(second).await), (401, 200));

    // Only the last two are accepted.
    account.rotate(&api, third).await;
    assert_eq!((status(second).await, status(third).await), (200, 200));
    account.rotate(&api, first).await;
    assert_eq!(
        [
            status(first).await,
            status(second).await,
            status(third).await
        ],
        [200, 401, 200]
    );
    assert_eq!(
        service
            .count("SELECT count(*) FROM payment_account_secrets")
            .await,
        2
    );
}
