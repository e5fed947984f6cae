//! The IP address that a session records: the connection's, or the one that a trusted proxy or a
//! secret client names in `x-forwarded-for`.

use crate::harness::{api::ApiClient, service::Service};

#[derive(Debug, Clone, Copy)]
enum KeyKind {
    Secret,
    Public,
}
use KeyKind::{Public, Secret};

/// Trusted proxies: none, one, or two.
const NONE: &str = "";
const ONE: &str = "127.0.0.0/8";
const TWO: &str = "127.0.0.0/8, 10.0.0.0/8, fd00::/8";

/// Trusted proxies, kind of client, values of `x-forwarded-for`, and the recorded address. The
/// connection comes from 127.0.0.1, which is the client or, with trusted proxies, a proxy.
const TABLE: [(&str, KeyKind, &[&str], &str); 30] = [
    // No header.
    (NONE, Secret, &[], "127.0.0.1"),
    (NONE, Public, &[], "127.0.0.1"),
    (ONE, Secret, &[], "127.0.0.1"),
    // One address.
    (NONE, Secret, &["203.0.113.7"], "203.0.113.7"),
    // A publishable client is not believed.
    (NONE, Public, &["203.0.113.7"], "127.0.0.1"),
    (NONE, Public, &["127.0.0.2"], "127.0.0.1"),
    // Several addresses: the user is the last entry before the server.
    (NONE, Secret, &["203.0.113.1, 203.0.113.7"], "203.0.113.7"),
    (NONE, Public, &["203.0.113.1, 203.0.113.7"], "127.0.0.1"),
    (NONE, Secret, &["203.0.113.1", "203.0.113.7"], "203.0.113.7"),
    // Invalid values are ignored.
    (NONE, Secret, &["unknown"], "127.0.0.1"),
    (NONE, Secret, &[""], "127.0.0.1"),
    (NONE, Secret, &["203.0.113.7, "], "127.0.0.1"),
    (NONE, Secret, &["300.1.1.1"], "127.0.0.1"),
    (
        NONE,
        Secret,
        &["203.0.113.7'; DROP TABLE sessions; --"],
        "127.0.0.1",
    ),
    (NONE, Public, &["unknown"], "127.0.0.1"),
    // IPv6, and ports.
    (NONE, Secret, &["2001:db8::7"], "2001:db8::7"),
    (NONE, Secret, &["[2001:db8::7]:4711"], "2001:db8::7"),
    (NONE, Secret, &["203.0.113.7:4711"], "203.0.113.7"),
    (NONE, Secret, &["::ffff:203.0.113.7"], "203.0.113.7"),
    // Behind one proxy, which appends its client.
    (ONE, Public, &["198.51.100.7"], "198.51.100.7"),
    (ONE, Secret, &["198.51.100.7"], "198.51.100.7"),
    (ONE, Secret, &["203.0.113.7, 198.51.100.7"], "203.0.113.7"),
    (ONE, Public, &["203.0.113.7, 198.51.100.7"], "198.51.100.7"),
    (
        ONE,
        Secret,
        &["1.1.1.1, 203.0.113.7, 198.51.100.7"],
        "203.0.113.7",
    ),
    (ONE, Secret, &["unknown, 198.51.100.7"], "198.51.100.7"),
    (ONE, Public, &["unknown"], "127.0.0.1"),
    // Behind two proxies, of which the inner one appends the outer one.
    (TWO, Public, &["198.51.100.7, 10.0.0.2"], "198.51.100.7"),
    (
        TWO,
        Public,
        &["203.0.113.7, 198.51.100.7", "fd00::2"],
        "198.51.100.7",
    ),
    (
        TWO,
        Secret,
        &["203.0.113.7, 198.51.100.7, 10.0.0.2"],
        "203.0.113.7",
    ),
    // A client with a private address is not a trusted proxy.
    (ONE, Public, &["203.0.113.7, 10.0.0.2"], "10.0.0.2"),
];

/// Malformed input: 55.
#[tokio::test]
async fn session_ip_follows_trusted_proxies() {
    for proxies in [NONE, ONE, TWO] {
        let service = Service::start_in_process_with(|variables| {
            if !proxies.is_empty() {
                variables.insert("PERENNIAL_TRUSTED_PROXIES", proxies.to_owned());
            }
        })
        .await;
        let (secret, browser) = (service.api(&[]), service.api(&["--kind", "publishable"]));
        secret.sign_up("ada@example.com").await;
        for (_, kind, values, expected) in TABLE.iter().filter(|row| row.0 == proxies) {
            let api = match kind {
                Secret => &secret,
                Public => &browser,
            };
            let with = |api: ApiClient, value: &&str| api.with("x-forwarded-for", value);
            let api = values.iter().fold(api.clone(), with);
            let phone = api.with("user-agent", "a phone");
            let tokens = phone.sign_in("ada@example.com").await;
            let listed = api.with_bearer(tokens.access());
            let listed = listed.get("/authentication/tokens").await.json();
            let session = &listed["data"][0];
            assert_eq!(session["id"], tokens.session());
            assert_eq!(session["ip"], *expected, "{proxies} {kind:?} {values:?}");
            assert_eq!(session["user_agent"], "a phone");
        }
    }
}
