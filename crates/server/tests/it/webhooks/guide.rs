//! The servers of docs/how-to/receive-webhooks.md, run as they are on the page.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{create_plan, path, start};
use crate::{
    architecture::crate_path,
    harness::{child::ChildProcess, reserve_port, unique_name, wait_until},
};

const PAGE: &str = "../../docs/how-to/receive-webhooks.md";
/// As on the page, after `npx tsc`.
const COMPILER_OPTIONS: &str = "--strict --target es2022 --module nodenext receiver.mts";
/// Starting Node.js can take a while on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(1);
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(20);
/// A process that delivers to an endpoint reads its changed settings within this time.
const CHANGE_DELAY: Duration = Duration::from_secs(6);

fn page() -> String {
    fs::read_to_string(crate_path(PAGE)).unwrap()
}

/// Returns the only code block of the page in this language.
fn code(language: &str) -> String {
    let page = page();
    let blocks: Vec<&str> = page.split(&format!("```{language}\n")).skip(1).collect();
    let [block] = blocks.as_slice() else {
        panic!("{} blocks of {language}", blocks.len());
    };
    block.split_once("```").unwrap().0.to_owned()
}

/// A temporary folder, which is removed when this value is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(unique_name("perennial-guide-"));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server of the page. It prints a line for each event that it processes.
struct GuideServer {
    _child: ChildProcess,
    lines: Arc<Mutex<Vec<String>>>,
}

impl GuideServer {
    async fn start(command: &mut Command, port: u16, secret: &str) -> Self {
        command.env("WEBHOOK_SECRET", secret).stdout(Stdio::piped());
        let mut child = ChildProcess::spawn(command.env("PORT", port.to_string()));
        let output = BufReader::new(child.take_stdout());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let own = lines.clone();
        std::thread::spawn(move || {
            for line in output.lines() {
                own.lock().unwrap().push(line.unwrap());
            }
        });
        wait_until("the server listens", START_TIMEOUT, async || {
            TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        Self {
            _child: child,
            lines,
        }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits until the server has processed this many events.
    async fn wait_for_events(&self, count: usize) {
        wait_until("events are processed", DELIVERY_TIMEOUT, async || {
            self.lines().len() >= count
        })
        .await;
    }
}

/// Starts a server with `command`, delivers events to it, repeats one, and rotates the secret.
async fn deliver_to(mut command: Command) {
    let (_service, api) = start().await;
    let port = reserve_port();
    let url = format!("http://127.0.0.1:{port}/hook");
    let fields = json!({"url": url, "event_types": ["plan.created"]});
    let endpoint = api.create("/webhook-endpoints", &fields).await;
    let secret = endpoint["secret"].as_str().unwrap();
    let server = GuideServer::start(&mut command, port, secret).await;

    create_plan(&api, "first").await;
    server.wait_for_events(1).await;
    let events = api.get_json("/events?types=plan.created").await;
    let id = events["data"][0]["id"].as_str().unwrap();
    assert_eq!(server.lines(), [format!("{id} plan.created")]);

    // Requests that the service has not signed.
    let forged = reqwest::Client::new().post(&url).body("{}");
    for request in [
        forged.try_clone().unwrap(),
        forged
            .header("webhook-id", "evt_1")
            .header("webhook-timestamp", jiff::Timestamp::now().as_second())
            .header("webhook-signature", "v1,AAAA"),
    ] {
        assert_eq!(request.send().await.unwrap().status(), 401);
    }

    // The same event again, and a new one signed with both secrets.
    let replays = format!("{}/replays", path(&endpoint));
    api.create(&replays, &json!({"from": endpoint["created_at"]}))
        .await;
    let deliveries = async || -> Vec<Value> {
        let attempts = format!("{}/attempts", path(&endpoint));
        let attempts = api.get_json(&attempts).await;
        attempts["data"].as_array().unwrap().clone()
    };
    wait_until("the event is repeated", DELIVERY_TIMEOUT, async || {
        deliveries().await.len() == 2
    })
    .await;
    let rotated = format!("{}/rotate-secret", path(&endpoint));
    let rotated = api.post(&rotated, "").await;
    assert_eq!(rotated.status, 200, "{}", rotated.text);
    tokio::time::sleep(CHANGE_DELAY).await;
    create_plan(&api, "second").await;
    server.wait_for_events(2).await;
    assert_eq!(server.lines().len(), 2, "{:?}", server.lines());

    // The new secret alone.
    drop(server);
    let secret = rotated.json()["secret"].as_str().unwrap().to_owned();
    let server = GuideServer::start(&mut command, port, &secret).await;
    create_plan(&api, "third").await;
    server.wait_for_events(1).await;
    wait_until("all attempts are logged", DELIVERY_TIMEOUT, async || {
        deliveries().await.len() == 4
    })
    .await;
    for attempt in deliveries().await {
        assert_eq!(attempt["status_code"], 204, "{attempt}");
    }
}

#[tokio::test]
async fn typescript_server_of_the_guide_receives_events() {
    assert!(page().contains(&format!("npx tsc {COMPILER_OPTIONS}")));
    let folder = TemporaryFolder::new();
    let packages = crate_path("tests/webhook_libraries/node_modules");
    std::os::unix::fs::symlink(
        packages.canonicalize().unwrap(),
        folder.0.join("node_modules"),
    )
    .unwrap();
    folder.write("receiver.mts", &code("typescript"));
    let compiled = Command::new("node_modules/.bin/tsc")
        .args(COMPILER_OPTIONS.split(' '))
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stdout);
    assert!(compiled.status.success(), "{errors}");
    let mut command = Command::new("node");
    command.arg(folder.0.join("receiver.mjs"));
    deliver_to(command).await;
}

#[tokio::test]
async fn python_server_of_the_guide_receives_events() {
    let folder = TemporaryFolder::new();
    let mut command = Command::new(crate_path("../../.tools/venv/bin/python"));
    command.arg(folder.write("receiver.py", &code("python")));
    deliver_to(command).await;
}

/// Cargo builds `examples/` with the tests.
#[tokio::test]
async fn rust_server_of_the_guide_receives_events() {
    let source = crate_path("examples/webhook_receiver.rs");
    assert!(
        fs::read_to_string(source).unwrap() == code("rust"),
        "the page and crates/server/examples/webhook_receiver.rs differ"
    );
    let binaries = Path::new(env!("CARGO_BIN_EXE_perennial")).parent().unwrap();
    deliver_to(Command::new(binaries.join("examples/webhook_receiver"))).await;
}
