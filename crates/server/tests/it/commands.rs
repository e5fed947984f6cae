//! Configuration, keys and signals of the binary.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::harness::{
    database::Database,
    generated_file,
    process::{Process, Server, Variables, run, run_err, run_ok, sandbox},
};

/// Returns the environment of a live installation on this database.
pub fn live(database_url: &str) -> Variables {
    let mut variables = sandbox(database_url);
    variables.insert("PERENNIAL_MODE", "live".to_owned());
    variables.insert(
        "PERENNIAL_PUBLIC_URL",
        "https://billing.example.com/".to_owned(),
    );
    variables
}

#[tokio::test]
async fn live_mode_without_required_settings_reports_them() {
    let only_url = Variables::from([("DATABASE_URL", "postgres://127.0.0.1/x".to_owned())]);
    let output = run_err(&only_url, &["serve"]);
    assert!(output.contains("PERENNIAL_MASTER_KEY: is required in live mode; generate one with `perennial keys generate-master`"), "{output}");
    assert!(
        output.contains("PERENNIAL_PUBLIC_URL: is required in live mode"),
        "{output}"
    );
    let nothing = run_err(&Variables::new(), &["serve"]);
    assert!(nothing.contains("DATABASE_URL: must be set"), "{nothing}");
}

#[tokio::test]
async fn generated_master_key_is_accepted_as_a_file() {
    let database = Database::empty().await;
    let key = run_ok(&Variables::new(), &["keys", "generate-master"]);
    assert_eq!(key.trim().len(), 43);
    let file = std::env::temp_dir().join(format!("perennial-key-{}", std::process::id()));
    fs::write(&file, key).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut variables = live(&database.url);
    variables.remove("PERENNIAL_MASTER_KEY");
    variables.insert(
        "PERENNIAL_MASTER_KEY_FILE",
        file.to_str().unwrap().to_owned(),
    );
    let server = Server::start(&variables).await;
    // Links use the public URL, not the request's host.
    let api = crate::harness::api::ApiClient::new(&server.url);
    let problem = api.get("/subscription-plans/x").await;
    assert_eq!(
        problem.json()["type"],
        "https://billing.example.com/docs/errors/invalid_client"
    );
    drop(server);
    fs::remove_file(file).unwrap();

    // Another master key or another mode is rejected.
    variables.remove("PERENNIAL_MASTER_KEY_FILE");
    variables.insert(
        "PERENNIAL_MASTER_KEY",
        run_ok(&Variables::new(), &["keys", "generate-master"])
            .trim()
            .to_owned(),
    );
    let output = run_err(&variables, &["serve"]);
    assert!(
        output.contains("was set up with another master key"),
        "{output}"
    );
    let output = run_err(&sandbox(&database.url), &["serve"]);
    assert!(
        output.contains("was set up in live mode, but PERENNIAL_MODE is sandbox"),
        "{output}"
    );

    // In live mode, a custom client id needs an address allowlist. Commands read the mode from the
    // database.
    let bare = Variables::from([("DATABASE_URL", database.url.clone())]);
    let output = run_err(&bare, &["client", "create", "--id", "DEMO"]);
    assert!(output.contains("--allow-address"), "{output}");
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
async fn sandbox_starts_with_only_a_database_url() {
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
    assert_eq!(
        fs::read_to_string(&key).unwrap(),
        first,
        "the key is reused"
    );
    drop(server);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let output = run_err(&variables, &["serve"]);
    assert!(output.contains("can be read by others"), "{output}");
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn config_check_reports_all_errors() {
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
    let output = run_err(&variables, &["config", "check"]);
    for expected in [
        "PERENNIAL_LISTN: unknown setting; did you mean PERENNIAL_LISTEN?",
        "PERENNIAL_FOO: unknown setting; `perennial config show` lists all settings",
        "PERENNIAL_DATABASE_URL: unknown setting; did you mean DATABASE_URL?",
        "PERENNIAL_ADMIN_LISTEN: must be an address and port, such as 127.0.0.1:8080; got \"nowhere\"",
        "PERENNIAL_WORKERS: must be an integer from 0 to 100; got \"some\"",
        "PERENNIAL_RATE_PER_PEER: must be an integer from 1 to 1000000, or 0 for no limit; got \"-1\"",
        "PERENNIAL_DRAIN_SECONDS: must be a number of seconds from 0 to 3600; got \"soon\"",
        "PERENNIAL_OTLP_SHARE: must be a number from 0 to 1, such as 0.1; got \"2\"",
        "PERENNIAL_PUBLIC_URL: must be a scheme and host only, such as https://billing.example.com; got \"billing.example.com\"",
        "PERENNIAL_DATABASE_LANES: must be an integer from 1 to 64; got \"0\"",
        "PERENNIAL_MASTER_KEY: is a placeholder",
        "PERENNIAL_CELLS: must be name=url",
    ] {
        assert!(output.contains(expected), "{expected} is not in:\n{output}");
    }
    for arguments in [vec!["migrate"], vec!["config", "check"]] {
        let output = run_err(&sandbox("mysql://nonsense"), &arguments);
        assert!(output.contains("must start with postgres://"), "{output}");
    }
}

#[test]
fn config_show_prints_sources_and_hides_secrets() {
    let mut variables = sandbox("postgres://user:hunter2@127.0.0.1/x?password=hunter2");
    variables.insert("PERENNIAL_WORKERS", "3".to_owned());
    variables.insert("PERENNIAL_MASTER_KEY_PREVIOUS", "hunter2".to_owned());
    variables.insert(
        "PERENNIAL_CELLS",
        "a=postgres://user:hunter2@127.0.0.1/x".to_owned(),
    );
    variables.insert(
        "PERENNIAL_OTLP_ENDPOINT",
        "http://user:hunter2@127.0.0.1:4318".to_owned(),
    );
    let output = run(&variables, &["config", "show"]);
    let [shown, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(
        errors.contains("PERENNIAL_MASTER_KEY_PREVIOUS: must be 43"),
        "{errors}"
    );
    assert!(
        !shown.contains("hunter2") && !errors.contains("hunter2"),
        "{shown}{errors}"
    );
    variables.remove("PERENNIAL_MASTER_KEY_PREVIOUS");
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
            "postgres://user:***@127.0.0.1/x?password=***",
            "environment"
        ]
    );
    assert_eq!(
        run_ok(&variables, &["config", "check"]).trim(),
        "the configuration is valid"
    );
}

/// Defaults that depend on the mode, the machine or another setting are shown too.
#[test]
fn config_show_prints_effective_values() {
    let mut variables = Variables::from([
        ("DATABASE_URL", "postgres://127.0.0.1/x".to_owned()),
        ("PERENNIAL_MODE", "sandbox".to_owned()),
        ("PERENNIAL_LISTEN", "127.0.0.1:18080".to_owned()),
        ("HOME", "/home/ada".to_owned()),
    ]);
    let shown = |variables: &Variables, key: &str| -> (String, String) {
        let output = run_ok(variables, &["config", "show", "--json"]);
        let settings = output
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let setting = settings.into_iter().find(|setting| setting["key"] == key);
        let setting = setting.unwrap();
        let text = |name: &str| setting[name].as_str().unwrap().to_owned();
        (text("value"), text("from"))
    };
    let default = |value: &str| (value.to_owned(), "default".to_owned());
    let url = shown(&variables, "PERENNIAL_PUBLIC_URL");
    assert_eq!(url, default("http://127.0.0.1:18080"));
    let drain = shown(&variables, "PERENNIAL_DRAIN_SECONDS");
    assert_eq!(drain, default("0"));
    let (lanes, origin) = shown(&variables, "PERENNIAL_DATABASE_LANES");
    assert!(lanes.parse::<u32>().unwrap() >= 2, "{lanes}");
    assert_eq!(origin, "default");
    let state = "/home/ada/.local/state/perennial";
    assert_eq!(shown(&variables, "PERENNIAL_STATE_DIR"), default(state));
    let key = shown(&variables, "PERENNIAL_MASTER_KEY");
    let file = format!("file {state}/sandbox-master.key");
    assert_eq!(key, ("(secret)".to_owned(), file));

    variables.insert("PERENNIAL_MODE", "live".to_owned());
    let drain = shown(&variables, "PERENNIAL_DRAIN_SECONDS");
    assert_eq!(drain, default("5"));
    let url = shown(&variables, "PERENNIAL_PUBLIC_URL");
    assert_eq!(url, (String::new(), "not set".to_owned()));
}

/// `just reference` writes the document.
#[test]
fn configuration_reference_is_current() {
    let generated = run_ok(&Variables::new(), &["config", "reference"]);
    generated_file::assert_current("docs/reference/configuration.md", &generated);
}

#[test]
fn every_command_has_help_text() {
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
async fn serve_on_a_port_in_use_reports_it() {
    let database = Database::create().await;
    let server = Server::start(&sandbox(&database.url)).await;
    let mut variables = sandbox(&database.url);
    variables.insert("PERENNIAL_LISTEN", server.url.replace("http://", ""));
    let output = run_err(&variables, &["serve"]);
    assert!(output.contains("cannot listen on 127.0.0.1:"), "{output}");
}

#[tokio::test]
async fn sigterm_stops_serve_and_work_cleanly() {
    let database = Database::create().await;
    let mut server = Server::start(&sandbox(&database.url)).await;
    assert!(server.process.stop().await, "{}", server.process.log());
    let mut worker = Process::spawn(&sandbox(&database.url), &["work"]);
    crate::harness::wait_until(
        "the worker runs",
        std::time::Duration::from_secs(10),
        async || worker.log().contains("working"),
    )
    .await;
    assert!(worker.stop().await, "{}", worker.log());
}
