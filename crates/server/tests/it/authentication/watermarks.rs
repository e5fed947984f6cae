//! Watermarks end the sessions of a user, an issuer, a tenant or the installation on every instance
//! within a second.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    api::{ApiClient, ApiResponse},
    auth::SessionTokens,
    client::create_client,
    database::Database,
    in_process::InProcessServer,
    process::{Server, Variables, run_err, run_ok, sandbox},
    service::Service,
    wait_until,
};

const OTHER_ISSUER: &str = "https://other.example";
const SECOND: Duration = Duration::from_secs(1);

/// Two instances, and two tenants: `default` in the home cell, `acme` in another one.
struct WatermarkFixture {
    // Dropped in this order: the servers stop before their databases are dropped.
    servers: [Server; 2],
    variables: Variables,
    home: Database,
    second: Database,
}

/// A user's session, and clients of its tenant on both instances.
struct Probe {
    apis: [ApiClient; 2],
    email: &'static str,
    tokens: SessionTokens,
}

impl WatermarkFixture {
    async fn start() -> Self {
        let (home, second) = (Database::create().await, Database::create().await);
        let mut variables = sandbox(&home.url);
        variables.insert("PERENNIAL_CELLS", format!("second={}", second.url));
        variables.insert(
            "PERENNIAL_PUBLIC_URL",
            "http://perennial.example".to_owned(),
        );
        let first = Server::start(&variables).await;
        run_ok(
            &variables,
            &["tenant", "create", "--name", "acme", "--cell", "second"],
        );
        let second_server = Server::start(&variables).await;
        Self {
            servers: [first, second_server],
            variables,
            home,
            second,
        }
    }

    fn apis(&self, tenant: &str) -> [ApiClient; 2] {
        let (_, client) = create_client(&self.home.url, &["--tenant", tenant]);
        let api = |server: &Server| ApiClient::new(&server.url).with("client-id", &client);
        [api(&self.servers[0]), api(&self.servers[1])]
    }

    /// Signs up a user, with a session of this issuer.
    async fn probe(&self, tenant: &str, email: &'static str, issuer: Option<&str>) -> Probe {
        let apis = self.apis(tenant);
        let tokens = apis[0].sign_up(email).await;
        let probe = Probe {
            apis,
            email,
            tokens,
        };
        if let Some(issuer) = issuer {
            self.set_issuer(&probe, issuer).await;
        }
        probe
    }

    /// Changes the issuer of a session that no instance has cached yet.
    async fn set_issuer(&self, probe: &Probe, issuer: &str) {
        let session = probe.tokens.session().trim_start_matches("ses_");
        let sql = format!("UPDATE sessions SET issuer = '{issuer}' WHERE id = '{session}'");
        self.home.connect().await.execute(&sql, &[]).await.unwrap();
    }

    fn run(&self, arguments: &[&str]) -> String {
        run_ok(&self.variables, arguments)
    }

    /// Waits until the servers' workers have recorded this many events, and returns their data.
    async fn events(&self, database: &Database, kind: &str, number: usize) -> Vec<Value> {
        let client = database.connect().await;
        let sql = "SELECT data FROM events WHERE kind = $1 ORDER BY at, data->>'issuer'";
        let mut found = Vec::new();
        wait_until(kind, Duration::from_secs(20), async || {
            let rows = client.query(sql, &[&kind]).await.unwrap();
            found = rows.iter().map(|row| row.get(0)).collect();
            found.len() >= number
        })
        .await;
        assert_eq!(found.len(), number, "{found:?}");
        found
    }
}

impl Probe {
    async fn statuses(&self) -> [u16; 2] {
        let [first, second] = &self.apis;
        let token = self.tokens.access();
        [
            first.check(token).await.status,
            second.check(token).await.status,
        ]
    }

    /// Checks the session until both instances have cached it.
    async fn cache(&self) {
        for _ in 0..3 {
            assert_eq!(self.statuses().await, [200, 200], "{}", self.email);
        }
    }

    async fn assert_ended(&self) {
        let email = self.email;
        wait_until(email, SECOND, async || self.statuses().await == [401, 401]).await;
        for api in &self.apis {
            let refreshed = api.refresh(self.tokens.refresh()).await;
            assert_eq!(
                (refreshed.status, refreshed.problem().as_str()),
                (401, "invalid_grant"),
                "{email}"
            );
        }
    }

    async fn sign_in(&mut self) {
        self.tokens = self.apis[0].sign_in(self.email).await;
    }
}

#[tokio::test]
async fn each_kind_of_watermark_ends_its_sessions_on_all_instances() {
    let fixture = WatermarkFixture::start().await;
    let mut ada = fixture.probe("default", "ada@example.com", None).await;
    let mut bob = (fixture.probe("default", "bob@example.com", Some(OTHER_ISSUER))).await;
    let mut cyd = fixture.probe("acme", "cyd@example.com", None).await;
    // Users of the same address and issuer in another tenant.
    let twin = fixture.probe("acme", "ada@example.com", None).await;
    twin.cache().await;
    // Arguments, and which of three sessions they end.
    let cases: [(&[&str], [bool; 3]); 5] = [
        (
            &["ada@example.com", "--tenant", "default"],
            [true, false, false],
        ),
        (
            &["--user", "bob@example.com", "--tenant", "default"],
            [false, true, false],
        ),
        (
            &["--issuer", OTHER_ISSUER, "--tenant", "default", "--yes"],
            [false, true, false],
        ),
        (&["--tenant", "default", "--yes"], [true, true, false]),
        (&["--all", "--yes"], [true, true, true]),
    ];
    for (arguments, ends) in cases {
        for probe in [&ada, &bob, &cyd] {
            probe.cache().await;
        }
        let arguments = [&["session", "revoke"], arguments].concat();
        let output = fixture.run(&arguments);
        let mut ended = ends.iter().filter(|ends| **ends).count();
        if arguments.contains(&"--all") {
            // The twin.
            ended += 1;
        }
        let expected = format!("revoked {ended} session");
        assert!(output.starts_with(&expected), "{arguments:?}: {output}");
        for (probe, ends) in [&mut ada, &mut bob, &mut cyd].into_iter().zip(ends) {
            if ends {
                probe.assert_ended().await;
                // A session that is created later works immediately, everywhere.
                probe.sign_in().await;
                if probe.email == "bob@example.com" {
                    fixture.set_issuer(probe, OTHER_ISSUER).await;
                }
            }
            assert_eq!(probe.statuses().await, [200, 200], "{arguments:?}");
        }
        let twin_status = if arguments.contains(&"--all") {
            401
        } else {
            200
        };
        assert_eq!(twin.statuses().await, [twin_status; 2], "{arguments:?}");
    }

    // Housekeeping ends the rows, and records one event with the number of sessions.
    let users = fixture
        .events(&fixture.home, "user.sessions_revoked", 2)
        .await;
    assert!(
        users
            .iter()
            .all(|data| data["count"] == 1 && data["reason"] == "operator")
    );
    let home = fixture
        .events(&fixture.home, "tenant.sessions_revoked", 3)
        .await;
    let counts: Vec<_> = home
        .iter()
        .map(|data| (&data["issuer"], &data["count"]))
        .collect();
    assert_eq!(
        counts,
        [
            (&json!(OTHER_ISSUER), &json!(1)),
            (&Value::Null, &json!(2)),
            (&Value::Null, &json!(2)),
        ]
    );
    let second = fixture
        .events(&fixture.second, "tenant.sessions_revoked", 1)
        .await;
    assert_eq!(second[0]["count"], 2);
    for (database, active) in [(&fixture.home, 2_i64), (&fixture.second, 1)] {
        let client = database.connect().await;
        let sql = "SELECT count(*) FROM sessions WHERE ended_at IS NULL";
        let left: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(left, active);
    }
}

#[tokio::test]
async fn revoking_many_sessions_needs_a_scope_and_confirmation() {
    let fixture = WatermarkFixture::start().await;
    let ada = fixture.probe("default", "ada@example.com", None).await;
    let cyd = fixture.probe("acme", "cyd@example.com", None).await;
    for (arguments, sessions) in [
        (
            &["--issuer", "urn:perennial:sandbox", "--tenant", "default"][..],
            "1 session;",
        ),
        (
            &["--issuer", OTHER_ISSUER, "--tenant", "default"],
            "0 sessions;",
        ),
        (&["--tenant", "acme"], "1 session;"),
        (&["--all"], "2 sessions;"),
    ] {
        let output = fixture.run(&[&["session", "revoke"], arguments].concat());
        assert!(
            output.starts_with(&format!("would revoke {sessions}")),
            "{output}"
        );
    }
    let output = run_err(&fixture.variables, &["session", "revoke", "--yes"]);
    assert!(output.contains("--issuer, --tenant or --all"), "{output}");
    let several = ["session", "revoke", "--issuer", OTHER_ISSUER, "--yes"];
    assert!(run_err(&fixture.variables, &several).contains("choose one with --tenant"));
    for arguments in [
        &["--all", "--tenant", "acme"][..],
        &["--all", "--issuer", OTHER_ISSUER],
        &["--user", "ada@example.com", "--issuer", OTHER_ISSUER],
    ] {
        let output = run_err(
            &fixture.variables,
            &[&["session", "revoke", "--yes"], arguments].concat(),
        );
        assert!(output.contains("cannot be used with"), "{output}");
    }
    for probe in [&ada, &cyd] {
        assert_eq!(probe.statuses().await, [200, 200]);
    }
}

#[tokio::test]
async fn removing_a_provider_ends_or_keeps_its_sessions() {
    let fixture = WatermarkFixture::start().await;
    let add = [
        "provider",
        "add",
        "--tenant",
        "default",
        "--issuer",
        OTHER_ISSUER,
        "--audience",
        "product",
    ];
    let remove = ["provider", "remove", "--tenant", "default", OTHER_ISSUER];
    let ada = fixture.probe("default", "ada@example.com", None).await;
    let bob = fixture
        .probe("default", "bob@example.com", Some(OTHER_ISSUER))
        .await;
    fixture.run(&add);
    for probe in [&ada, &bob] {
        probe.cache().await;
    }
    // Standard input is not a terminal.
    let refused = run_err(&fixture.variables, &remove);
    assert!(
        refused.contains("--end-sessions") && refused.contains("--keep-sessions"),
        "{refused}"
    );
    let output = fixture.run(&["provider", "list", "--tenant", "default"]);
    assert!(
        output.contains(OTHER_ISSUER),
        "nothing was removed: {output}"
    );
    fixture.run(&[&remove[..], &["--keep-sessions"]].concat());
    assert_eq!(bob.statuses().await, [200, 200]);

    fixture.run(&add);
    let variables = fixture.variables.clone();
    let arguments = [&remove[..], &["--end-sessions"]].concat();
    let removing = tokio::task::spawn_blocking(move || run_ok(&variables, &arguments));
    // Ended immediately, while the command waits for sign-ins in progress.
    let limit = Duration::from_secs(5);
    wait_until("ended", limit, async || bob.statuses().await == [401, 401]).await;
    assert!(!removing.is_finished());
    // A sign-in with a token that was verified before the removal.
    let late = bob.apis[0].sign_in("bob@example.com").await;
    let late = Probe {
        tokens: late,
        apis: bob.apis.clone(),
        email: "bob@example.com",
    };
    fixture.set_issuer(&late, OTHER_ISSUER).await;
    late.cache().await;
    let output = removing.await.unwrap();
    assert!(output.contains("revoked 2 sessions"), "{output}");
    late.assert_ended().await;
    assert_eq!(ada.statuses().await, [200, 200]);
}

async fn send(api: &ApiClient, method: Method, path: &str) -> ApiResponse {
    api.try_send(method, path, None).await.unwrap()
}

/// With a fixed clock, all sessions and revocations have the same time.
#[tokio::test]
async fn sessions_of_the_same_instant_end_only_if_created_before_the_watermark() {
    let database = Database::create().await;
    let variables = sandbox(&database.url);
    let server = std::sync::Arc::new(InProcessServer::start_with_fixed_clock(&variables).await);
    let (_, client) = create_client(&database.url, &[]);
    let api = ApiClient::in_process(server).with("client-id", &client);
    let mut current = api.sign_up("ada@example.com").await;
    for round in 0..30 {
        let other = api.sign_in("ada@example.com").await;
        assert_eq!(api.check(other.access()).await.status, 200);
        let path = match round % 2 {
            0 => "/authentication/tokens/revoke-all",
            _ => "/authentication/tokens/revoke-all-except-current",
        };
        let revoked = send(&api.with_bearer(current.access()), Method::POST, path).await;
        let keeps_current = round % 2 == 1;
        let count = if keeps_current { 1 } else { 2 };
        assert_eq!(revoked.json(), json!({"success": true, "revoked": count}));
        assert_eq!(api.check(other.access()).await.status, 401);
        let expected = if keeps_current { 200 } else { 401 };
        assert_eq!(api.check(current.access()).await.status, expected);
        let new = api.sign_in("ada@example.com").await;
        assert_eq!(api.check(new.access()).await.status, 200);
        let new_session = api.with_bearer(new.access());
        let revoked = send(
            &new_session,
            Method::POST,
            "/authentication/tokens/revoke-all-except-current",
        );
        assert_eq!(revoked.await.status, 200);
        // The session that the earlier revocation kept is not kept by this one.
        assert_eq!(api.check(current.access()).await.status, 401);
        current = new;
    }
}

/// A session can be cached for up to a second after its end. In that time it must not except itself.
#[tokio::test]
async fn ended_session_cannot_keep_itself_by_revoking_the_others() {
    let service = Service::start_in_process().await;
    let api = service.api(&[]);
    api.sign_up("ada@example.com").await;
    let client = service.database.connect().await;
    // Without a notification, as if it had not arrived yet.
    let watermark = "INSERT INTO session_watermarks (tenant_id, scope, sessions_valid_from, reason, set_at)
        SELECT tenant_id, 'issuer:urn:perennial:sandbox', nextval('session_numbers'), 'operator', now() FROM tenants
        ON CONFLICT (tenant_id, scope) DO UPDATE SET sessions_valid_from = excluded.sessions_valid_from";
    let mut tokens = None;
    // Until the listener is caught up, sessions are not read from the cache.
    wait_until("a cached session", Duration::from_secs(20), async || {
        let new = api.sign_in("ada@example.com").await;
        assert_eq!(api.check(new.access()).await.status, 200);
        client.execute(watermark, &[]).await.unwrap();
        let is_cached = api.check(new.access()).await.status == 200;
        tokens = Some(new);
        is_cached
    })
    .await;
    let tokens = tokens.unwrap();
    for path in ["revoke-all-except-current", "revoke-all"] {
        let path = format!("/authentication/tokens/{path}");
        let response = send(&api.with_bearer(tokens.access()), Method::POST, &path).await;
        assert_eq!(
            (response.status, response.problem().as_str()),
            (401, "invalid_token")
        );
    }
    assert_eq!(api.refresh(tokens.refresh()).await.status, 401);
}
