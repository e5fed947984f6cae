//! `perennial event tail`: prints the latest events, and new ones until Ctrl-C.

use std::{fs::File, path::PathBuf};

use serde_json::Value;

use super::feed::{READABLE_TIMEOUT, create_plan, read_events};
use crate::harness::{
    process::{Process, perennial},
    service::Service,
    unique_name, wait_until,
};

/// A running `perennial event tail`, and the file with its standard output.
struct Tail {
    process: Process,
    output: PathBuf,
}

impl Tail {
    fn start(service: &Service, arguments: &[&str]) -> Self {
        let output = std::env::temp_dir().join(unique_name("perennial-tail-"));
        let mut command = perennial();
        command.stdout(File::create(&output).unwrap());
        let arguments = [&["event", "tail"], arguments].concat();
        let process = Process::spawn_command(command, &service.variables, &arguments);
        Self { process, output }
    }

    /// Returns the complete lines so far.
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.output).unwrap();
        let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
        complete.lines().map(str::to_owned).collect()
    }

    async fn wait_for_lines(&self, count: usize) -> Vec<String> {
        let what = format!("{count} lines");
        wait_until(&what, READABLE_TIMEOUT, async || {
            self.lines().len() >= count
        })
        .await;
        self.lines()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.output);
    }
}

#[tokio::test]
async fn tail_prints_new_events_until_it_is_interrupted() {
    let service = Service::start().await;
    let api = service.api(&[]);
    for slug in ["one", "two"] {
        create_plan(&api, slug).await;
    }
    read_events(&api, 2).await;
    let mut text = Tail::start(&service, &["--last", "1"]);
    let mut json = Tail::start(&service, &["--json", "--types", "plan.*"]);
    let shown = text.wait_for_lines(1).await;
    assert!(shown[0].contains("plan.created"), "{shown:?}");
    assert_eq!(shown.len(), 1, "only the last one");
    // Ten positions before the end, of which some are for operators.
    let shown = json.wait_for_lines(2).await;
    assert_eq!(shown.len(), 2, "{shown:?}");

    let user = serde_json::json!({"email": "ada@example.com"});
    let user = api.create("/users", &user).await;
    let plan = create_plan(&api, "three").await;
    let lines = text.wait_for_lines(3).await;
    assert!(
        lines[1].ends_with(user["id"].as_str().unwrap()),
        "{lines:?}"
    );
    assert!(
        lines[2].ends_with(plan["id"].as_str().unwrap()),
        "{lines:?}"
    );
    assert!(lines.iter().all(|line| line.len() <= 100), "{lines:?}");
    let lines = json.wait_for_lines(3).await;
    let event: Value = serde_json::from_str(&lines[2]).unwrap();
    let listed = api.get_json("/events?types=plan.*").await;
    assert_eq!(event, listed["data"][2], "as GET /events returns it");

    for tail in [&mut text, &mut json] {
        assert!(tail.process.interrupt().await, "{}", tail.process.log());
        assert_eq!(tail.lines().len(), 3);
    }
}
