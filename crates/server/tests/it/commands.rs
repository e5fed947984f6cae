//! Configuration and keys, as an operator meets them.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::harness::{
    database::Database,
    process::{Process, Server, Variables, run, run_err, run_ok, sandbox},
};

fn live(database: &Database) -> Variables {
    let mut variables = sandbox(&database.url);
    variables.insert("PERENNIAL_MODE", "live".to_owned());
    variables.insert(
        "PERENNIAL_PUBLIC_URL",
        "https://billing.example.com/".to_owned(),
    );
    variables
}

#[tokio::test]
async fn live_mode_says_what_it_needs() {
    let only_url = Variables::from([("DATABASE_URL", "postgres://127.0.0.1/x".to_owned())]);
    let said = run_err(&only_url, &["serve"]);
    assert!(said.contains("PERENNIAL_MASTER_KEY: is required in live mode; make one with `perennial keys generate-master`"), "{said}");
    assert!(
        said.contains("PERENNIAL_PUBLIC_URL: is required in live mode"),
        "{said}"
    );
    let nothing = run_err(&Variables::new(), &["serve"]);
    assert!(nothing.contains("DATABASE_URL: is not set"), "{nothing}");
}

#[tokio::test]
async fn a_master_key_can_be_made_and_given_as_a_file() {
    let database = Database::empty().await;
    let key = run_ok(&Variables::new(), &["keys", "generate-master"]);
    assert_eq!(key.trim().len(), 43);
    let file = std::env::temp_dir().join(format!("perennial-key-{}", std::process::id()));
    fs::write(&file, key).unwrap();
    let mut variables = live(&database);
    variables.remove("PERENNIAL_MASTER_KEY");
    variables.insert(
        "PERENNIAL_MASTER_KEY_FILE",
        file.to_str().unwrap().to_owned(),
    );
    let server = Server::start(&variables).await;
    // Links come from the public address, whatever the request calls us.
    let api = crate::harness::api::Api::new(&server.url).with("host", "evil.example.com");
    let problem = api.get("/subscription-plans/x").await;
    assert_eq!(
        problem.json()["type"],
        "https://billing.example.com/docs/errors/invalid_client"
    );
    drop(server);
    fs::remove_file(file).unwrap();

    // Another key is not this database's, and another mode neither.
    variables.remove("PERENNIAL_MASTER_KEY_FILE");
    variables.insert(
        "PERENNIAL_MASTER_KEY",
        run_ok(&Variables::new(), &["keys", "generate-master"])
            .trim()
            .to_owned(),
    );
    let said = run_err(&variables, &["serve"]);
    assert!(
        said.contains("was set up with another master key"),
        "{said}"
    );
    let said = run_err(&sandbox(&database.url), &["serve"]);
    assert!(
        said.contains("is a live one, and PERENNIAL_MODE is sandbox"),
        "{said}"
    );

    // In live mode an id that can be guessed needs addresses; commands learn the mode from the database.
    let bare = Variables::from([("DATABASE_URL", database.url.clone())]);
    let said = run_err(&bare, &["client", "create", "--id", "DEMO"]);
    assert!(said.contains("--allow-address"), "{said}");
    run_ok(
        &bare,
        &[
            "client",
            "create",
            "--id",
            "DEMO",
            "--allow-address",
            "10.0.0.0/8",
        ],
    );
}

#[tokio::test]
async fn a_sandbox_needs_the_database_alone() {
    let database = Database::empty().await;
    let home = std::env::temp_dir().join(format!("perennial-home-{}", std::process::id()));
    fs::create_dir_all(&home).unwrap();
    let variables = Variables::from([
        ("DATABASE_URL", database.url.clone()),
        ("PERENNIAL_MODE", "sandbox".to_owned()),
        ("HOME", home.to_str().unwrap().to_owned()),
    ]);
    let server = Server::start(&variables).await;
    let key = home.join(".local/state/perennial/sandbox-master.key");
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let first = fs::read_to_string(&key).unwrap();
    drop(server);
    let server = Server::start(&variables).await;
    assert_eq!(fs::read_to_string(&key).unwrap(), first, "the key is kept");
    drop(server);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let said = run_err(&variables, &["serve"]);
    assert!(said.contains("can be read by others"), "{said}");
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn mistakes_are_reported_all_at_once() {
    let mut variables = sandbox("mysql://nonsense");
    variables.insert("PERENNIAL_LISTN", "127.0.0.1:1".to_owned());
    variables.insert("PERENNIAL_FOO", "1".to_owned());
    variables.insert("PERENNIAL_DATABASE_URL", "postgres://x".to_owned());
    variables.insert("PERENNIAL_ADMIN_LISTEN", "nowhere".to_owned());
    variables.insert("PERENNIAL_WORKERS", "some".to_owned());
    variables.insert("PERENNIAL_RATE_PER_PEER", "-1".to_owned());
    variables.insert("PERENNIAL_DRAIN_SECONDS", "soon".to_owned());
    variables.insert("PERENNIAL_OTLP_SHARE", "2".to_owned());
    variables.insert("PERENNIAL_PUBLIC_URL", "billing.example.com".to_owned());
    variables.insert("PERENNIAL_DATABASE_LANES", "0".to_owned());
    variables.insert("PERENNIAL_MASTER_KEY", "A".repeat(43));
    variables.insert("PERENNIAL_CELLS", "home=postgres://x/y".to_owned());
    let said = run_err(&variables, &["config", "check"]);
    for expected in [
        "PERENNIAL_LISTN: no such key; did you mean PERENNIAL_LISTEN?",
        "PERENNIAL_FOO: no such key; `perennial config show` lists all keys",
        "PERENNIAL_DATABASE_URL: no such key; did you mean DATABASE_URL?",
        "PERENNIAL_ADMIN_LISTEN: nowhere: expected an address and a port, such as 127.0.0.1:8080",
        "PERENNIAL_WORKERS: some: expected a whole number from 0 to 100",
        "PERENNIAL_RATE_PER_PEER: -1: expected a whole number from 1 to 1000000, or 0 for no limit",
        "PERENNIAL_DRAIN_SECONDS: soon: expected seconds from 0 to 3600",
        "PERENNIAL_OTLP_SHARE: 2: expected a number from 0 to 1",
        "PERENNIAL_PUBLIC_URL: billing.example.com",
        "PERENNIAL_DATABASE_LANES: 0: expected a whole number from 1 to 64",
        "PERENNIAL_MASTER_KEY: is a placeholder",
        "PERENNIAL_CELLS: expected name=url",
    ] {
        assert!(said.contains(expected), "{expected} is not in:\n{said}");
    }
    for arguments in [vec!["migrate"], vec!["config", "check"]] {
        let said = run_err(&sandbox("mysql://nonsense"), &arguments);
        assert!(said.contains("begins with postgres://"), "{said}");
    }
}

#[test]
fn show_names_each_values_origin_and_no_secret() {
    let mut variables = sandbox("postgres://user:hunter2@127.0.0.1/x");
    variables.insert("PERENNIAL_WORKERS", "3".to_owned());
    let shown = run_ok(&variables, &["config", "show"]);
    assert!(!shown.contains("hunter2"), "{shown}");
    let line = |key: &str| {
        shown
            .lines()
            .find(|line| line.contains(key))
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        line("PERENNIAL_WORKERS"),
        ["PERENNIAL_WORKERS", "3", "environment"]
    );
    assert_eq!(
        line("PERENNIAL_LISTEN"),
        ["PERENNIAL_LISTEN", "127.0.0.1:8080", "default"]
    );
    assert_eq!(
        line("DATABASE_URL"),
        [
            "DATABASE_URL",
            "postgres://user:***@127.0.0.1/x",
            "environment"
        ]
    );
    assert_eq!(
        run_ok(&variables, &["config", "check"]).trim(),
        "the configuration is right"
    );
}

/// `docs/configuration.md` is what the code says; `just reference` writes it.
#[test]
fn the_reference_is_true() {
    let page = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/configuration.md"
    ))
    .unwrap();
    assert_eq!(
        page,
        run_ok(&Variables::new(), &["config", "reference"]),
        "run `just reference`"
    );
}

#[test]
fn every_command_has_help() {
    for command in [
        "serve", "work", "migrate", "tenant", "client", "keys", "config", "openapi",
    ] {
        let output = run(&Variables::new(), &[command, "--help"]);
        assert!(
            output.status.success() && output.stdout.len() > 100,
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_second_instance_on_the_same_port_says_so() {
    let database = Database::create().await;
    let server = Server::start(&sandbox(&database.url)).await;
    let mut variables = sandbox(&database.url);
    variables.insert("PERENNIAL_LISTEN", server.url.replace("http://", ""));
    let said = run_err(&variables, &["serve"]);
    assert!(said.contains("cannot listen on 127.0.0.1:"), "{said}");
}

#[tokio::test]
async fn sigterm_ends_serve_and_work_well() {
    let database = Database::create().await;
    let mut server = Server::start(&sandbox(&database.url)).await;
    assert!(server.process.stop().await, "{}", server.process.log());
    let mut worker = Process::spawn(&sandbox(&database.url), &["work"]);
    crate::harness::wait_until(
        "the worker works",
        std::time::Duration::from_secs(10),
        async || worker.log().contains("working"),
    )
    .await;
    assert!(worker.stop().await, "{}", worker.log());
}
