//! What commands do when the reader of their output has gone away.

use std::{io::pipe, process::Stdio, time::Duration};

use crate::harness::{
    database::Database,
    process::{perennial, sandbox},
    reserve_port, wait_until,
};

/// As in `perennial openapi | head`: the status is that of a process that SIGPIPE ended.
#[test]
fn command_with_closed_stdout_exits_quietly_with_status_141() {
    for arguments in [&["openapi"][..], &["completions", "bash"]] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = perennial().args(arguments).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{arguments:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.is_empty(), "{arguments:?}: {stderr}");
    }
}

#[test]
fn failed_command_with_closed_stderr_keeps_its_exit_code() {
    for command in [&["serve"][..], &["work"], &["tenant", "list"]] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        // Fails because DATABASE_URL is not set.
        let status = perennial().args(command).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(1), "{command:?}");
    }
}

#[tokio::test]
async fn serve_with_closed_stdout_and_stderr_keeps_serving() {
    let database = Database::create().await;
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let (listen, admin) = (reserve_port(), reserve_port());
    let mut child = perennial()
        .args(["serve"])
        .envs(&sandbox(&database.url))
        .env("PERENNIAL_LISTEN", format!("127.0.0.1:{listen}"))
        .env("PERENNIAL_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
        .env("PERENNIAL_LOG", "trace")
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    let ready = format!("http://127.0.0.1:{admin}/readyz");
    wait_until("serve is ready", Duration::from_secs(30), async || {
        let response = reqwest::get(&ready).await;
        response.is_ok_and(|response| response.status() == 200)
    })
    .await;
    // Requests are logged. They must succeed although the log cannot be written.
    for _ in 0..3 {
        let response = reqwest::get(format!("http://127.0.0.1:{listen}/nowhere")).await;
        assert_eq!(response.unwrap().status(), 404);
    }
    let status = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status, None, "serve ended");
}
