//! From where somebody signed in: whom a server names in `x-forwarded-for`, or whoever calls.

use crate::harness::{api::Api, service::Service};

/// Who calls: a server, or a page.
#[derive(Debug, Clone, Copy)]
enum By {
    Secret,
    Public,
}
use By::{Public, Secret};

/// What stands between the caller and us: nothing that is trusted, one proxy, or two.
const NOTHING: &str = "";
const ONE: &str = "127.0.0.0/8";
const TWO: &str = "127.0.0.0/8, 10.0.0.0/8, fd00::/8";

/// What is trusted, who calls, the lines of `x-forwarded-for`, and the address that is recorded. The socket's own
/// address is 127.0.0.1. With nothing in between that is the caller; otherwise a proxy.
const TABLE: [(&str, By, &[&str], &str); 30] = [
    // None.
    (NOTHING, Secret, &[], "127.0.0.1"),
    (NOTHING, Public, &[], "127.0.0.1"),
    (ONE, Secret, &[], "127.0.0.1"),
    // One: as the customer's document shows it.
    (NOTHING, Secret, &["203.0.113.7"], "203.0.113.7"),
    // Spoofed by a page: its word is nothing.
    (NOTHING, Public, &["203.0.113.7"], "127.0.0.1"),
    (NOTHING, Public, &["127.0.0.2"], "127.0.0.1"),
    // Many hops: a server's user is the entry just left of the server.
    (
        NOTHING,
        Secret,
        &["203.0.113.1, 203.0.113.7"],
        "203.0.113.7",
    ),
    (NOTHING, Public, &["203.0.113.1, 203.0.113.7"], "127.0.0.1"),
    (
        NOTHING,
        Secret,
        &["203.0.113.1", "203.0.113.7"],
        "203.0.113.7",
    ),
    // Garbage names nobody.
    (NOTHING, Secret, &["unknown"], "127.0.0.1"),
    (NOTHING, Secret, &[""], "127.0.0.1"),
    (NOTHING, Secret, &["203.0.113.7, "], "127.0.0.1"),
    (NOTHING, Secret, &["300.1.1.1"], "127.0.0.1"),
    (
        NOTHING,
        Secret,
        &["203.0.113.7'; DROP TABLE sessions; --"],
        "127.0.0.1",
    ),
    (NOTHING, Public, &["unknown"], "127.0.0.1"),
    // IPv6, and ports.
    (NOTHING, Secret, &["2001:db8::7"], "2001:db8::7"),
    (NOTHING, Secret, &["[2001:db8::7]:4711"], "2001:db8::7"),
    (NOTHING, Secret, &["203.0.113.7:4711"], "203.0.113.7"),
    (NOTHING, Secret, &["::ffff:203.0.113.7"], "203.0.113.7"),
    // Behind one proxy, which adds whom it was called by.
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
    // Behind two, of which the inner one adds the outer one.
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
    // A caller who claims to be a proxy of ours is still the caller.
    (ONE, Public, &["203.0.113.7, 10.0.0.2"], "10.0.0.2"),
];

/// Catalogue: 55.
#[tokio::test]
async fn from_where() {
    for between in [NOTHING, ONE, TWO] {
        let service = Service::start_with(|variables| {
            if !between.is_empty() {
                variables.insert("PERENNIAL_TRUSTED_PROXIES", between.to_owned());
            }
        })
        .await;
        let (secret, page) = (
            service.caller(&[]),
            service.caller(&["--kind", "publishable"]),
        );
        secret.sign_up("ada@example.com").await;
        for (_, by, lines, expected) in TABLE.iter().filter(|row| row.0 == between) {
            let caller = match by {
                Secret => &secret,
                Public => &page,
            };
            let with = |caller: Api, line: &&str| caller.with("x-forwarded-for", line);
            let caller = lines.iter().fold(caller.clone(), with);
            let phone = caller.with("user-agent", "a phone");
            let tokens = phone.sign_in("ada@example.com").await;
            let listed = caller.on_behalf_of(tokens.access());
            let listed = listed.get("/authentication/tokens").await.json();
            let session = &listed["data"][0];
            assert_eq!(session["id"], tokens.session());
            assert_eq!(session["ip"], *expected, "{between} {by:?} {lines:?}");
            assert_eq!(session["user_agent"], "a phone");
        }
    }
}
