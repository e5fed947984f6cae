//! Endpoints with HTTPS: whose certificates are accepted.

use std::time::Duration;

use serde_json::{Value, json};

use super::{allow_loopback, create_endpoint, create_plan, path, wait_for_count};
use crate::harness::{
    certificates::Authority, service::Service, wait_until, webhook_receiver::WebhookReceiver,
};

#[tokio::test]
async fn certificate_must_be_trusted_and_have_the_name_of_the_url() {
    let (authority, stranger) = (Authority::create(), Authority::create());
    let service = Service::start_with(|variables| {
        allow_loopback(variables);
        variables.insert("SSL_CERT_FILE", authority.file());
    })
    .await;
    let api = service.api(&[]);
    let trusted = WebhookReceiver::start_tls(authority.server_config("IP:127.0.0.1")).await;
    let misnamed = authority.server_config("DNS:other.example");
    let misnamed = WebhookReceiver::start_tls(misnamed).await;
    let untrusted = WebhookReceiver::start_tls(stranger.server_config("IP:127.0.0.1")).await;
    let fields = json!({"event_types": ["plan.created"]});
    let trusted_endpoint = create_endpoint(&api, &trusted, fields.clone()).await;
    let misnamed_endpoint = create_endpoint(&api, &misnamed, fields.clone()).await;
    let untrusted_endpoint = create_endpoint(&api, &untrusted, fields).await;
    create_plan(&api, "pro").await;
    create_plan(&api, "free").await;
    wait_for_count(&trusted, 2).await;
    let secret = trusted_endpoint["secret"].as_str().unwrap();
    assert!(trusted.received()[1].is_signed_with(secret));
    assert_eq!(trusted.connections(), 1, "the connection is kept");

    for (endpoint, receiver, expected) in [
        (
            &misnamed_endpoint,
            &misnamed,
            "TLS failed: invalid peer certificate: certificate not valid for name \"127.0.0.1\"; certificate is only valid for DnsName(\"other.example\")",
        ),
        (
            &untrusted_endpoint,
            &untrusted,
            "the certificate of the server is not signed by a trusted authority",
        ),
    ] {
        let attempts = format!("{}/attempts", path(endpoint));
        wait_until(
            "the attempt is logged",
            Duration::from_secs(10),
            async || {
                let attempts = api.get_json(&attempts).await["data"].clone();
                !attempts.as_array().unwrap().is_empty()
            },
        )
        .await;
        let delivered = api.get_json(&attempts).await["data"][0].clone();
        let tested = api.post(&(path(endpoint) + "/test"), "{}").await.json();
        for attempt in [delivered, tested] {
            assert_eq!(attempt["is_success"], false);
            assert_eq!(attempt["status_code"], Value::Null);
            assert_eq!(attempt["error"], expected);
        }
        assert_eq!(receiver.count(), 0);
    }
}
