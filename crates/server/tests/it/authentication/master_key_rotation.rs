//! Rotation of the master key: no request fails, no session is lost, and the old key becomes useless.
//!
//! `RATE` sets the requests per second, `SESSIONS` the number of sessions of sleeping devices. `just
//! rotate-master-key` uses 500 and 200,000.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use perennial::{
    auth::tokens::sealing_owner,
    crypto::{DerivedKeys, SealedSecret},
    payment_accounts, webhooks,
};
use perennial_domain::{Id, PaymentAccountId, PaymentNotificationId, WebhookEndpointId};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio_postgres::Client;

use crate::{
    harness::{
        api::ApiClient,
        auth::SessionTokens,
        client::create_client,
        database::Database,
        env_number,
        load_balancer::LoadBalancer,
        master_key::{DumpedSession, derived_keys, generate_key, start_with_new_key, with_keys},
        process::{MASTER_KEY, Process, Server, Variables, run_err, run_ok, sandbox},
        service::Service,
        wait_until,
    },
    payment_accounts::{TestAccount, subscription_event},
};

async fn count(database: &Client, query: &str) -> i64 {
    database.query_one(query, &[]).await.unwrap().get(0)
}

async fn restart_all(servers: &mut [Server], variables: &Variables) {
    for server in servers {
        assert!(server.process.stop().await, "{}", server.process.log());
        server.restart(variables).await;
        // haproxy checks readiness every 100 ms.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Inserts sessions of devices that never come back, so that `keys rewrap` takes a while.
async fn insert_sessions(database: &Client, sessions: u32, key: &str) {
    let key_id = derived_keys(key).present().id.to_column();
    let sql = format!(
        "SET session_replication_role = replica;
         INSERT INTO sessions (tenant_id, id, user_id, client_id, issuer, address, salt, generation, confirmed_generation,
            refreshed_at, created_at, last_used_at, expires_at, number, refresh_key_id)
         SELECT tenant_id, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'https://accounts.example.com',
            '203.0.113.7', decode(md5(n::text), 'hex'), 3, 3, now(), now(), now(), now() + interval '14 days', 0, {key_id}
         FROM tenants, generate_series(1, {sessions}) AS n;
         SET session_replication_role = origin"
    );
    database.batch_execute(&sql).await.unwrap();
}

/// Sends `rate` requests per second until `done`: session checks, and every fourth a refresh. Panics if
/// one fails.
fn start_load(
    api: &ApiClient,
    rate: u32,
    done: &Arc<AtomicBool>,
    sent: &Arc<AtomicU64>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let pause = Duration::from_secs(10) / rate;
    (0..10)
        .map(|worker| {
            let (api, done, sent) = (api.clone(), done.clone(), sent.clone());
            tokio::spawn(async move {
                let mut tokens = api.sign_up(&format!("user{worker}@example.com")).await;
                let mut ticks = tokio::time::interval(pause);
                for number in 0_u64.. {
                    ticks.tick().await;
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    if number % 4 == 0 {
                        let response = api.refresh(tokens.refresh()).await;
                        tokens = SessionTokens::from_response(&response);
                    } else {
                        let response = api.check(tokens.access()).await;
                        assert_eq!(response.status, 200, "{}", response.text);
                    }
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect()
}

/// Returns how many API keys, secrets and notifications of payment accounts the keys can decrypt.
async fn count_payment_secrets(keys: &DerivedKeys, database: &Client) -> usize {
    use payment_accounts::account_secrets;
    let sealed = "SELECT id, api_key, 'key' FROM payment_accounts
        UNION ALL SELECT account_id, secret, 'secret' FROM payment_account_secrets
        UNION ALL SELECT id, body, 'body' FROM payment_notifications";
    let rows = database.query(sealed, &[]).await.unwrap();
    assert_eq!(rows.len(), 4, "a key, two secrets and a notification");
    rows.iter()
        .filter(|row| {
            let owner = match row.get(2) {
                "key" => account_secrets::api_key_owner(PaymentAccountId::new(row.get(0))),
                "secret" => account_secrets::secret_owner(PaymentAccountId::new(row.get(0))),
                _ => account_secrets::body_owner(PaymentNotificationId::new(row.get(0))),
            };
            keys.open(&SealedSecret(row.get(1)), &owner).is_ok()
        })
        .count()
}

/// Tries everything that an attacker could do with the key and a dump of the database.
async fn assert_useless(old: &str, api: &ApiClient, variables: &Variables, database: &Client) {
    let output = run_err(&with_keys(variables, old, None), &["serve"]);
    assert!(
        output.contains("was set up with another master key"),
        "{output}"
    );
    let keys = derived_keys(old);
    for row in database
        .query("SELECT id, private_key FROM signing_keys", &[])
        .await
        .unwrap()
    {
        let sealed = SealedSecret(row.get(1));
        assert!(keys.open(&sealed, &sealing_owner(row.get(0))).is_err());
    }
    for row in database
        .query("SELECT issuer, client_secret FROM identity_providers", &[])
        .await
        .unwrap()
    {
        assert!(keys.open(&SealedSecret(row.get(1)), row.get(0)).is_err());
    }
    let endpoints = "SELECT id, secret, previous_secret FROM webhook_endpoints";
    let endpoints = database.query(endpoints, &[]).await.unwrap();
    assert_eq!(endpoints.len(), 1);
    for row in endpoints {
        let owner = webhooks::secrets::sealing_owner(WebhookEndpointId::new(row.get(0)));
        for column in [1, 2] {
            assert!(keys.open(&SealedSecret(row.get(column)), &owner).is_err());
        }
    }
    assert_eq!(count_payment_secrets(&keys, database).await, 0);
    // The sessions of real devices; the others are of no client.
    let sessions = database
        .query(
            "SELECT tenant_id, sessions.id, salt, generation FROM sessions JOIN users USING (tenant_id)
             WHERE users.id = sessions.user_id AND ended_at IS NULL",
            &[],
        )
        .await
        .unwrap();
    assert!(sessions.len() > 10, "{}", sessions.len());
    for row in sessions {
        let generation = u32::try_from(row.get::<_, i32>("generation")).unwrap();
        let session = DumpedSession::from_row(&row);
        let forged = session.refresh_token(&keys, generation);
        let response = api.refresh(&forged).await;
        assert_eq!(response.status, 401, "{}", response.text);
    }
}

/// Rotates twice behind a load balancer. Each `keys rewrap` is killed once.
#[tokio::test]
async fn master_key_rotation_fails_no_request_and_loses_no_session() {
    let rate = env_number("RATE").unwrap_or(40);
    let sleeping = env_number("SESSIONS").unwrap_or(10_000);
    let database = Database::create().await;
    let mut variables = sandbox(&database.url);
    variables.insert(
        "PERENNIAL_PUBLIC_URL",
        "http://perennial.example".to_owned(),
    );
    variables.insert("PERENNIAL_DRAIN_SECONDS", "0.5".to_owned());
    variables.insert("PERENNIAL_DATABASE_POOL", "8".to_owned());
    variables.insert("PERENNIAL_TRUSTED_PROXIES", "127.0.0.0/8".to_owned());
    let mut servers = [
        Server::start(&variables).await,
        Server::start(&variables).await,
    ];
    let (_, client) = create_client(&database.url, &[]);
    let balancer = LoadBalancer::start(&servers);
    let api = ApiClient::new(&balancer.url).with("client-id", &client);
    wait_until("haproxy responds", Duration::from_secs(10), async || {
        let response = api.try_send(reqwest::Method::GET, "/openapi.json", None);
        response.await.is_ok_and(|response| response.status == 200)
    })
    .await;
    let secret = std::env::temp_dir().join(format!("perennial-rotated-{}", std::process::id()));
    std::fs::write(&secret, "a client secret at a provider").unwrap();
    let secret_file = secret.to_str().unwrap();
    #[rustfmt::skip]
    let add_provider = [
        "provider", "add", "--issuer", "http://127.0.0.1:1", "--audience", "a", "--verify", "introspection",
        "--client-id", "app", "--client-secret-file", secret_file,
    ];
    run_ok(&variables, &add_provider);
    std::fs::remove_file(&secret).unwrap();
    let direct = database.connect().await;
    let endpoint = json!({"url": "https://192.0.2.1.example/hook", "status": "disabled"});
    let endpoint = api.create("/webhook-endpoints", &endpoint).await;
    let rotate = format!(
        "/webhook-endpoints/{}/rotate-secret",
        endpoint["id"].as_str().unwrap()
    );
    let secret = api.post(&rotate, "{}").await.json()["secret"].clone();
    let account = TestAccount::stripe(&api, &api).await;
    account.rotate(&api, "whsec_second").await;
    let event = subscription_event("evt_1", "sub_1").to_string();
    // The other instance may not know the account yet.
    wait_until("a notification", Duration::from_secs(5), async || {
        account.send(event.as_bytes()).await.status == 200
    })
    .await;
    // Devices that sleep during both rotations, with a first and with a later token.
    let mut asleep = Vec::new();
    for number in 0..20 {
        let mut tokens = api.sign_up(&format!("sleeper{number}@example.com")).await;
        if number % 2 == 0 {
            tokens = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);
        }
        asleep.push(tokens);
    }

    let (done, sent) = (Arc::default(), Arc::default());
    let load = start_load(&api, rate, &done, &sent);
    let mut keys = vec![MASTER_KEY.to_owned()];
    for round in 0..2 {
        insert_sessions(&direct, sleeping, &keys[round]).await;
        let (old, new) = (keys[round].clone(), generate_key());
        let both = with_keys(&variables, &new, Some(&old));
        restart_all(&mut servers, &both).await;
        let mut killed = Process::spawn(&both, &["keys", "rewrap"]);
        let new_id = derived_keys(&new).present().id.to_column();
        let rewrapped = format!(
            "SELECT count(*) FROM (SELECT FROM sessions
             WHERE refresh_key_id = {new_id} AND carried_tokens IS NOT NULL LIMIT 1) AS found"
        );
        wait_until(
            "a session is rewrapped",
            Duration::from_mins(1),
            async || count(&direct, &rewrapped).await > 0,
        )
        .await;
        killed.kill();
        let status = run_ok(&both, &["keys", "rewrap", "--status"]);
        assert!(!status.contains("nothing"), "killed too late: {status}");
        // The previous key cannot be removed yet.
        let output = run_err(&with_keys(&variables, &new, None), &["serve"]);
        assert!(
            output.contains("still needs the previous master key"),
            "{output}"
        );
        let output = run_ok(&both, &["keys", "rewrap"]);
        assert!(output.contains("remaining: nothing"), "{output}");
        restart_all(&mut servers, &with_keys(&variables, &new, None)).await;
        keys.push(new);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    done.store(true, Ordering::Relaxed);
    for worker in load {
        worker.await.unwrap();
    }
    let sent = sent.load(Ordering::Relaxed);
    println!("two rotations, {sent} requests, none failed");
    assert!(sent > u64::from(rate) * 5, "{sent}");

    let current = with_keys(&variables, &keys[2], None);
    assert_eq!(
        run_ok(&current, &["keys", "rewrap", "--status"]).trim(),
        "not yet protected by PERENNIAL_MASTER_KEY: nothing"
    );
    for old in &keys[..2] {
        assert_useless(old, &api, &current, &direct).await;
    }
    // The webhook secret can still be decrypted, so it can be rotated, and it is the same.
    let row = direct
        .query_one("SELECT id, secret FROM webhook_endpoints", &[])
        .await
        .unwrap();
    let owner = webhooks::secrets::sealing_owner(WebhookEndpointId::new(row.get(0)));
    let opened = derived_keys(&keys[2])
        .open(&SealedSecret(row.get(1)), &owner)
        .unwrap();
    assert_eq!(secret, opened.expose_secret());
    let current_keys = derived_keys(&keys[2]);
    assert_eq!(count_payment_secrets(&current_keys, &direct).await, 4);
    account.accept(&subscription_event("evt_2", "sub_1")).await;
    // Sleeping devices continue, and the second use of a token gets the same successor.
    for tokens in asleep {
        let next = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);
        let again = SessionTokens::from_response(&api.refresh(tokens.refresh()).await);
        assert_eq!(next.refresh(), again.refresh());
        assert_eq!(api.check(next.access()).await.status, 200);
        SessionTokens::from_response(&api.refresh(next.refresh()).await);
    }
}

/// An instance that was forgotten responds 503 instead of signing users out.
#[tokio::test]
async fn instance_without_the_new_master_key_is_not_ready() {
    let service = Service::start().await;
    let (_, client) = service.create_client(&[]);
    let api = service.anonymous().with("client-id", &client);
    let tokens = api.sign_up("ada@example.com").await;
    let server = start_with_new_key(&service).await;
    let readiness = async || service.server.admin("/readyz").await.unwrap();
    wait_until(
        "the instance is not ready",
        Duration::from_secs(5),
        async || readiness().await.0 == 503,
    )
    .await;
    let (_, reason) = readiness().await;
    assert!(reason.contains("the master key was replaced"), "{reason}");

    let other = ApiClient::new(&server.url).with("client-id", &client);
    let next = SessionTokens::from_response(&other.refresh(tokens.refresh()).await);
    assert_eq!(api.refresh(next.refresh()).await.status, 503);
    assert_eq!(other.refresh(next.refresh()).await.status, 200);
}
