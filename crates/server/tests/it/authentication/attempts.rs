//! How often somebody may sign in, and send tokens that are no good.

use crate::harness::{
    api::{Answer, Api},
    people::{Tokens, outside_token},
    service::Service,
};

const PUBLISHABLE: &[&str] = &["--kind", "publishable"];

async fn limited(name: &'static str, most: u32) -> Service {
    Service::start_with(|variables| {
        variables.insert(name, most.to_string());
        variables.insert("PERENNIAL_TRUSTED_PROXIES", "127.0.0.0/8".to_owned());
    })
    .await
}

/// A caller at this address, or one for whom a server calls.
fn at(caller: &Api, address: &str) -> Api {
    caller.with("x-forwarded-for", address)
}

fn is_refused(answer: &Answer, who: &str, most: u32) {
    assert_eq!(answer.problem(), "rate_limited", "{}", answer.text);
    assert!(
        answer
            .text
            .contains(&format!("this {who} sends more than {most} ")),
        "{}",
        answer.text
    );
    let wait: u32 = answer.header("retry-after").parse().unwrap();
    assert!((1..=60 / most + 1).contains(&wait), "{wait}");
}

async fn sign_in(caller: &Api, email: &str) -> Answer {
    let token = outside_token(email);
    caller.authenticate("sign-in", &token, email).await
}

#[tokio::test]
async fn sign_ins_of_a_client() {
    let service = limited("PERENNIAL_SIGN_INS_PER_CLIENT", 5).await;
    let (greedy, modest) = (service.caller(&[]), service.caller(&[]));
    greedy.sign_up("ada@example.com").await;
    for _ in 0..4 {
        greedy.sign_in("ada@example.com").await;
    }
    for how in ["sign-in", "sign-up"] {
        let token = outside_token("bob@example.com");
        let answer = greedy.authenticate(how, &token, "bob@example.com").await;
        is_refused(&answer, "client", 5);
    }
    modest.sign_in("ada@example.com").await;
    // Everything else goes on.
    assert_eq!(greedy.get("/subscription-plans").await.status, 200);
    let (_, metrics) = service.server.admin("/metrics").await.unwrap();
    let series = r#"perennial_shed_total{by="sign-ins of a client"} 2"#;
    assert!(metrics.contains(series), "{metrics}");
}

#[tokio::test]
async fn sign_ins_from_an_address() {
    let service = limited("PERENNIAL_SIGN_INS_PER_PEER", 5).await;
    let (server, page) = (service.caller(&[]), service.caller(PUBLISHABLE));
    server.sign_up("ada@example.com").await;
    // A page's user is whoever calls, whatever the page says; a server's is whom it names, behind its own address.
    let of_page = at(&page, "203.0.113.1");
    let of_server = at(&server, "203.0.113.1, 198.51.100.1");
    for caller in [&of_page, &of_server] {
        for _ in 0..5 {
            assert_eq!(sign_in(caller, "ada@example.com").await.status, 200);
        }
        is_refused(&sign_in(caller, "ada@example.com").await, "peer", 5);
    }
    let made_up = at(&page, "192.0.2.9, 203.0.113.1");
    is_refused(&sign_in(&made_up, "ada@example.com").await, "peer", 5);
    for caller in [
        at(&page, "203.0.113.2"),
        at(&server, "203.0.113.2, 198.51.100.1"),
        // One that names nobody has only its client's limit.
        server.clone(),
    ] {
        assert_eq!(sign_in(&caller, "ada@example.com").await.status, 200);
    }
}

#[tokio::test]
async fn sign_ins_of_an_identity() {
    let service = limited("PERENNIAL_SIGN_INS_PER_IDENTITY", 3).await;
    let server = service.caller(&[]);
    server.sign_up("ada@example.com").await;
    server.sign_up("bob@example.com").await;
    // What is merely claimed does not count.
    for _ in 0..5 {
        let token = outside_token("bob@example.com") + "x";
        let answer = server
            .authenticate("sign-in", &token, "ada@example.com")
            .await;
        assert_eq!(answer.status, 401);
    }
    for _ in 0..2 {
        server.sign_in("ada@example.com").await;
    }
    is_refused(&sign_in(&server, "ada@example.com").await, "identity", 3);
    server.sign_in("bob@example.com").await;
}

/// Whoever guesses is not listened to for a while, whatever the guess is made of; nobody else suffers from it.
#[tokio::test]
async fn refused_tokens_from_an_address() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_PEER", 6).await;
    let page = service.caller(PUBLISHABLE);
    let (guesser, other) = (at(&page, "203.0.113.1"), at(&page, "203.0.113.2"));
    let ada = other.sign_up("ada@example.com").await;
    for _ in 0..2 {
        assert_eq!(guesser.check("guess").await.status, 401);
        assert_eq!(guesser.refresh("prn_rt_guess").await.status, 401);
        let answer = guesser
            .authenticate("sign-in", "guess", "ada@example.com")
            .await;
        assert_eq!(answer.status, 401);
    }
    let good = outside_token("ada@example.com");
    let answers = [
        guesser.check(ada.access()).await,
        guesser.refresh(ada.refresh()).await,
        guesser
            .authenticate("sign-in", &good, "ada@example.com")
            .await,
    ];
    for answer in answers {
        is_refused(&answer, "peer", 6);
    }
    // What is known already is no guess, and whoever is signed in at that address goes on.
    assert_eq!(other.check(ada.access()).await.status, 200);
    assert_eq!(guesser.check(ada.access()).await.status, 200);
    // Without a token it may go on.
    assert_eq!(guesser.get("/subscription-plans").await.status, 200);
    assert_eq!(other.check(ada.access()).await.status, 200);
    assert_eq!(other.refresh(ada.refresh()).await.status, 200);
}

#[tokio::test]
async fn refused_tokens_of_a_server() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_CLIENT", 4).await;
    let (server, page) = (service.caller(&[]), service.caller(PUBLISHABLE));
    let ada = server.sign_up("ada@example.com").await;
    for _ in 0..10 {
        assert_eq!(page.check("guess").await.status, 401, "counts elsewhere");
        let named = at(&server, "203.0.113.1, 198.51.100.1");
        assert_eq!(named.check("guess").await.status, 401, "counts elsewhere");
    }
    for _ in 0..4 {
        assert_eq!(server.check("guess").await.status, 401);
    }
    is_refused(&server.check(ada.access()).await, "client", 4);
    assert_eq!(page.check(ada.access()).await.status, 200);
}

/// Whoever has a refresh token and another client cannot lock out the session by sending it.
#[tokio::test]
async fn a_living_session_cannot_be_used_up() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_SESSION", 4).await;
    let (server, thief) = (service.caller(&[]), service.caller(PUBLISHABLE));
    let ada = server.sign_up("ada@example.com").await;
    for _ in 0..10 {
        assert_eq!(thief.refresh(ada.refresh()).await.status, 401);
    }
    assert_eq!(server.check(ada.access()).await.status, 200);
    assert_eq!(server.refresh(ada.refresh()).await.status, 200);
}

/// A publishable id is everybody's: nobody uses up what is for all.
#[tokio::test]
async fn nothing_counts_against_a_publishable_client() {
    let service = limited("PERENNIAL_SIGN_INS_PER_CLIENT", 3).await;
    let page = service.caller(PUBLISHABLE);
    for guess in 0..10 {
        let stranger = at(&page, &format!("203.0.113.{guess}"));
        let answer = stranger
            .authenticate("sign-in", "guess", "ada@example.com")
            .await;
        assert_eq!(answer.status, 401);
    }
    at(&page, "198.51.100.1").sign_up("ada@example.com").await;
}

/// A device that does not notice that it was signed out.
#[tokio::test]
async fn refused_tokens_of_an_ended_session() {
    let service = limited("PERENNIAL_REFUSED_TOKENS_PER_SESSION", 4).await;
    let server = service.caller(&[]);
    let ended = server.sign_up("ada@example.com").await;
    let lives = Tokens::of(&sign_in(&server, "ada@example.com").await);
    let bearer = server.on_behalf_of(ended.access());
    assert_eq!(
        bearer
            .post("/authentication/tokens/logout", "")
            .await
            .status,
        200
    );
    for _ in 0..2 {
        assert_eq!(server.check(ended.access()).await.status, 401);
        assert_eq!(server.refresh(ended.refresh()).await.status, 401);
    }
    is_refused(&server.check(ended.access()).await, "session", 4);
    is_refused(&server.refresh(ended.refresh()).await, "session", 4);
    assert_eq!(server.check(lives.access()).await.status, 200);
}
