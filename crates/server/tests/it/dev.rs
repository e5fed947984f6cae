//! `perennial dev`: a sandbox in the background.

use std::{net::TcpListener, path::PathBuf};

use serde_json::Value;

use crate::harness::{
    api::ApiClient,
    database::Database,
    process::{Variables, run, run_ok, sandbox},
    reserve_port,
};

/// A sandbox on a test database. Dropping it stops the service.
struct BackgroundSandbox {
    variables: Variables,
    directory: PathBuf,
    // Dropped last.
    database: Database,
}

impl BackgroundSandbox {
    async fn new(name: &str) -> Self {
        let database = Database::create().await;
        let mut variables = sandbox(&database.url);
        for name in ["PERENNIAL_LISTEN", "PERENNIAL_ADMIN_LISTEN"] {
            variables.insert(name, format!("127.0.0.1:{}", reserve_port()));
        }
        let directory = format!("perennial-dev-{name}-{}", std::process::id());
        Self {
            variables,
            directory: std::env::temp_dir().join(directory),
            database,
        }
    }

    fn arguments<'a>(&'a self, flags: &[&'a str]) -> Vec<&'a str> {
        let directory = self.directory.to_str().unwrap();
        [&["dev", "--data", directory], flags].concat()
    }

    /// Starts it, or finds it running. Returns the exported variables and what was printed to
    /// standard error.
    fn start(&self) -> (Value, String) {
        let output = run(
            &self.variables,
            &self.arguments(&["--background", "--json"]),
        );
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        (serde_json::from_slice(&output.stdout).unwrap(), errors)
    }
}

impl Drop for BackgroundSandbox {
    fn drop(&mut self) {
        run(&self.variables, &self.arguments(&["--stop"]));
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[tokio::test]
async fn dev_reports_another_port_and_creates_both_clients() {
    let mut sandbox = BackgroundSandbox::new("port").await;
    let occupied = TcpListener::bind(("127.0.0.1", reserve_port())).unwrap();
    let wanted = occupied.local_addr().unwrap().to_string();
    sandbox.variables.insert("PERENNIAL_LISTEN", wanted.clone());
    let (exported, errors) = sandbox.start();
    let listen = exported["PERENNIAL_LISTEN"].as_str().unwrap();
    assert_ne!(listen, wanted);
    let report = format!("{wanted} is in use; the API listens on {listen}");
    assert!(errors.contains(&report), "{errors}");
    assert!(
        errors.contains("in $CLIENT_ID (secret) and $PUBLISHABLE_ID (browser)"),
        "{errors}"
    );

    let api = ApiClient::new(exported["URL"].as_str().unwrap());
    let secret = exported["CLIENT_ID"].as_str().unwrap();
    let publishable = exported["PUBLISHABLE_ID"].as_str().unwrap();
    assert!(secret.starts_with("prn_sk_") && publishable.starts_with("prn_pk_"));
    assert_eq!(
        api.with("client-id", secret)
            .get("/subscriptions")
            .await
            .status,
        200
    );
    let page = api
        .with("client-id", publishable)
        .with("origin", "http://localhost:5173");
    let plans = page.get("/subscription-plans").await;
    assert_eq!(plans.status, 200, "{}", plans.text);
    assert_eq!(
        plans.header("access-control-allow-origin"),
        "http://localhost:5173"
    );

    // A server on this machine may receive webhooks.
    let endpoint = serde_json::json!({"url": "http://127.0.0.1:3000/", "status": "disabled"});
    let server = api.with("client-id", secret);
    server.create("/webhook-endpoints", &endpoint).await;

    // The same sandbox, and after a restart the same clients, even with a second tenant.
    let (running, errors) = sandbox.start();
    assert_eq!(running, exported);
    assert!(errors.contains("already running"), "{errors}");
    run_ok(&sandbox.variables, &sandbox.arguments(&["--stop"]));
    std::fs::remove_file(sandbox.directory.join("publishable-clients.json")).unwrap();
    run_ok(&sandbox.variables, &["tenant", "create", "--name", "acme"]);
    drop(occupied);
    let (restarted, errors) = sandbox.start();
    assert!(!errors.contains("is in use"), "{errors}");
    assert_eq!(restarted["PERENNIAL_LISTEN"], wanted);
    assert_eq!(restarted["CLIENT_ID"], exported["CLIENT_ID"]);
    assert_ne!(restarted["PUBLISHABLE_ID"], exported["PUBLISHABLE_ID"]);
}

#[tokio::test]
async fn dev_creates_clients_that_a_new_database_does_not_have() {
    let sandbox = BackgroundSandbox::new("new").await;
    let (first, _) = sandbox.start();
    run_ok(&sandbox.variables, &sandbox.arguments(&["--stop"]));
    // As in a database that was created again.
    let forget = "DELETE FROM client_values; DELETE FROM clients";
    let database = sandbox.database.connect().await;
    database.batch_execute(forget).await.unwrap();
    let (second, errors) = sandbox.start();
    for (variable, kind) in [("CLIENT_ID", "secret"), ("PUBLISHABLE_ID", "publishable")] {
        assert_ne!(second[variable], first[variable]);
        let report = format!("the stored {kind} API key is not valid in this database");
        assert!(errors.contains(&report), "{errors}");
    }
    let api = ApiClient::new(second["URL"].as_str().unwrap());
    let api = api.with("client-id", second["CLIENT_ID"].as_str().unwrap());
    assert_eq!(api.get("/subscriptions").await.status, 200);
    run_ok(&sandbox.variables, &sandbox.arguments(&["--stop"]));
    let (third, errors) = sandbox.start();
    assert_eq!(third["CLIENT_ID"], second["CLIENT_ID"]);
    assert!(!errors.contains("not valid in this database"), "{errors}");
}
