//! `examples/nightly-sync.py`: a copy of all subscriptions.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::{TemporaryFile, assert_success, script};
use crate::{
    harness::{
        child::{ChildProcess, unprivileged_command},
        process::Server,
    },
    subscriptions::{SubscriptionFixture, record_path},
};

/// More than one page.
const SUBSCRIPTIONS: usize = 230;

/// Runs SQL on the copy, in Python, and prints the selected rows as JSON.
const QUERY: &str = "import json, sqlite3, sys
copy = sqlite3.connect(sys.argv[1], isolation_level=None)
print(json.dumps(copy.execute(sys.argv[2]).fetchall()))";

/// A service with subscriptions, and a copy of them.
struct SyncFixture {
    fixture: SubscriptionFixture<Server>,
    subscriptions: Vec<Value>,
    copy: TemporaryFile,
}

impl SyncFixture {
    async fn start() -> Self {
        let fixture = SubscriptionFixture::start_server().await;
        let mut subscriptions = Vec::new();
        for _ in 0..SUBSCRIPTIONS {
            subscriptions.push(fixture.subscribe(json!({})).await);
        }
        // Created yesterday, so that a late change is newer.
        let yesterday = "UPDATE subscriptions
            SET created_at = created_at - interval '1 day', updated_at = updated_at - interval '1 day'";
        let database = fixture.service.database.connect().await;
        database.batch_execute(yesterday).await.unwrap();
        Self {
            fixture,
            subscriptions,
            copy: TemporaryFile::new("perennial-sync-"),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = script(&self.fixture.service, "python3", "nightly-sync.py");
        command.arg(self.copy.path()).args(arguments);
        command
    }

    /// Runs the script and returns how many subscriptions it read, changed and removed.
    fn sync(&self, arguments: &[&str]) -> (usize, usize, usize) {
        let printed = assert_success(self.command(arguments).output().unwrap());
        let mut numbers = printed
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|number| number.parse().ok());
        let mut next = || numbers.next().unwrap();
        (next(), next(), next())
    }

    fn query(&self, sql: &str) -> Value {
        // As the owner of the file: in a shared folder, not even root may write to files of others.
        let mut command = unprivileged_command("postgres", "python3");
        command
            .args(["-c", QUERY, self.copy.path(), sql])
            .current_dir("/");
        serde_json::from_str(&assert_success(command.output().unwrap())).unwrap()
    }

    /// Asserts that the copy has the subscriptions that the service lists, in their present versions.
    async fn assert_copy_is_current(&self) {
        let mut listed = BTreeMap::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/subscriptions?limit=200{cursor}");
            let page = self.fixture.api.get_json(&path).await;
            for record in page["data"].as_array().unwrap() {
                listed.insert(record["id"].to_string(), record.clone());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let rows = self.query("SELECT id, record FROM subscriptions");
        let mut copied = BTreeMap::new();
        for row in rows.as_array().unwrap() {
            let mut record: Value = serde_json::from_str(row[1].as_str().unwrap()).unwrap();
            // The script keeps amounts as text.
            record["price"] = record["price"].as_str().unwrap().parse().unwrap();
            copied.insert(row[0].to_string(), record);
        }
        assert_eq!(copied, listed);
    }

    /// Changes the metadata of a subscription through the API.
    async fn change(&self, subscription: usize, value: usize) {
        let body = json!({"metadata": {"round": value.to_string()}}).to_string();
        let path = record_path(&self.subscriptions[subscription]);
        assert_eq!(self.fixture.api.put(&path, &body).await.status, 200);
    }

    /// Changes a subscription with SQL, as a transaction that becomes visible late.
    async fn change_late(&self, subscription: usize, updated_at: &str) {
        let id = self.subscriptions[subscription]["id"].as_str().unwrap();
        let id = id.trim_start_matches("sub_");
        let sql = format!(
            "UPDATE subscriptions SET suspended = true, updated_at = {updated_at} WHERE id = '{id}'"
        );
        let database = self.fixture.service.database.connect().await;
        assert_eq!(database.execute(&sql, &[]).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn nightly_sync_copies_late_changes_and_removes_deleted_subscriptions() {
    let sync = SyncFixture::start().await;
    // Killed at any time, it completes the copy in the next run.
    let mut killed = ChildProcess::spawn(sync.command(&[]).stdout(Stdio::null()));
    killed.kill();
    let (read, ..) = sync.sync(&[]);
    assert_eq!(read, SUBSCRIPTIONS);
    sync.assert_copy_is_current().await;
    let (_, changed, _) = sync.sync(&[]);
    assert_eq!(changed, 0);

    for subscription in 0..5 {
        sync.change(subscription, 1).await;
    }
    let (_, changed, removed) = sync.sync(&[]);
    assert_eq!((changed, removed), (5, 0));
    sync.assert_copy_is_current().await;

    // A change in the very microsecond of the mark is read without any overlap.
    sync.change_late(10, "(SELECT max(updated_at) FROM subscriptions)")
        .await;
    assert_eq!(sync.sync(&["--overlap", "0"]), (2, 1, 0));
    // The worker stores a change some minutes late: only a longer overlap finds it.
    sync.change_late(11, "now() - interval '20 minutes'").await;
    assert_eq!(sync.sync(&["--overlap", "600"]).1, 0);
    let (_, changed, _) = sync.sync(&[]);
    assert_eq!(changed, 1);
    sync.assert_copy_is_current().await;

    let deleted = record_path(&sync.subscriptions[20]);
    assert_eq!(sync.fixture.api.delete(&deleted).await.status, 204);
    assert_eq!(sync.sync(&[]).2, 0);
    let (read, changed, removed) = sync.sync(&["--full"]);
    assert_eq!((read, changed, removed), (SUBSCRIPTIONS - 1, 0, 1));
    sync.assert_copy_is_current().await;
}

#[tokio::test]
async fn nightly_sync_applies_changes_during_its_run_once() {
    let sync = SyncFixture::start().await;
    sync.sync(&[]);
    sync.query("CREATE TABLE applied (id TEXT, updated_at TEXT, PRIMARY KEY (id, updated_at))");
    // A version that is applied twice violates the primary key, and the script fails.
    sync.query(
        "CREATE TRIGGER apply AFTER UPDATE ON subscriptions
         BEGIN INSERT INTO applied VALUES (new.id, new.updated_at); END",
    );
    let stopped = AtomicBool::new(false);
    let change = async {
        let mut round = 0;
        while !stopped.load(Ordering::Relaxed) {
            sync.change(round * 7 % SUBSCRIPTIONS, round).await;
            round += 1;
        }
        round
    };
    let copy = async {
        for _ in 0..5 {
            let mut command = sync.command(&[]);
            let run = tokio::task::spawn_blocking(move || command.output());
            assert_success(run.await.unwrap().unwrap());
        }
        stopped.store(true, Ordering::Relaxed);
    };
    let (changes, ()) = tokio::join!(change, copy);
    assert!(changes > 0);
    sync.sync(&[]);
    sync.assert_copy_is_current().await;
    let applied = sync.query("SELECT count(*) FROM applied");
    assert!(applied[0][0].as_u64().unwrap() > 0);
    assert_eq!(sync.sync(&[]).1, 0);
}
