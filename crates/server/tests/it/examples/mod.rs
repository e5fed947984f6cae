//! The scripts of `examples/`, run against a service.

mod import_subscribers;
mod my_subscription;
mod nightly_sync;
mod refund_webhook;

use std::{
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

use crate::{
    architecture::crate_path,
    harness::{
        child::{ChildProcess, unprivileged_command},
        process::http_get,
        reserve_port,
        service::Service,
        unique_name, wait_until,
    },
};

/// Starting Node.js can take a while on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Returns a command that runs a script with a new secret client of the service, and an empty environment otherwise.
fn script(service: &Service, program: &str, name: &str) -> Command {
    let (_, client_id) = service.create_client(&[]);
    let path = crate_path("../../examples").join(name);
    let mut command = unprivileged_command("postgres", program);
    command
        .arg(path.canonicalize().unwrap())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("URL", &service.server.url)
        .env("CLIENT_ID", client_id)
        // Otherwise Python writes compiled files beside the script.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir("/");
    command
}

/// A script that serves HTTP.
struct ExampleServer {
    _child: ChildProcess,
    url: String,
    http: reqwest::Client,
}

impl ExampleServer {
    /// Starts a script and waits until it listens.
    async fn start(command: &mut Command) -> Self {
        let port = reserve_port();
        let child = ChildProcess::spawn(command.env("PORT", port.to_string()));
        let url = format!("http://127.0.0.1:{port}");
        wait_until("the script listens", START_TIMEOUT, async || {
            http_get(&url, "/").await.is_ok()
        })
        .await;
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            _child: child,
            url,
            http,
        }
    }
}

/// Asserts that a script succeeded, and returns its output.
fn assert_success(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The path of a temporary file, which is removed when this value is dropped.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(prefix: &str) -> Self {
        Self(std::env::temp_dir().join(unique_name(prefix)))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Guides link to the scripts, so an instance serves each of them.
#[tokio::test]
async fn scripts_are_served_with_the_documentation() {
    let service = Service::start_in_process().await;
    let mut scripts = 0;
    for entry in std::fs::read_dir(crate_path("../../examples")).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("py" | "mjs")) {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let path_of_script = format!("/docs/examples/{name}");
        let served = service.anonymous().get(&path_of_script).await;
        assert_eq!(served.status, 200, "{name}");
        assert_eq!(served.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(served.text, std::fs::read_to_string(&path).unwrap());
        scripts += 1;
    }
    assert_eq!(scripts, 4);
}
