//! The real binary as a child process that ends with the test.

use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::free_port;

/// The binary under test, with nothing of our own environment but what a process needs.
pub fn perennial() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
    command.env_clear();
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// A running `perennial serve`.
pub struct Server {
    child: Child,
    pub admin_url: String,
}

impl Server {
    /// Starts it with these variables and waits until it lives.
    pub async fn start(variables: &BTreeMap<&str, String>) -> Self {
        let server = Self::spawn(variables);
        server.wait_for("/livez").await;
        server
    }

    /// Starts it and does not wait.
    pub fn spawn(variables: &BTreeMap<&str, String>) -> Self {
        let (port, admin_port) = (free_port(), free_port());
        let child = perennial()
            .arg("serve")
            .env("PERENNIAL_LISTEN", format!("127.0.0.1:{port}"))
            .env("PERENNIAL_ADMIN_LISTEN", format!("127.0.0.1:{admin_port}"))
            .envs(variables)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            admin_url: format!("http://127.0.0.1:{admin_port}"),
        }
    }

    /// Waits until a path of the admin listener answers 200.
    pub async fn wait_for(&self, path: &str) {
        let begun = Instant::now();
        loop {
            let answer = reqwest::get(format!("{}{path}", self.admin_url)).await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{path} does not answer"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
