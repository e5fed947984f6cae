//! The real binary as a child process that ends with the test.

use std::{
    collections::BTreeMap,
    fs::File,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use super::{free_port, wait_until};

/// A master key that everybody knows.
pub const MASTER_KEY: &str = "dGVzdHMgb25seTogYSBrZXkgdGhhdCBpcyBubyBrZXk";

/// Environment variables.
pub type Variables = BTreeMap<&'static str, String>;

/// The binary under test, with nothing of our own environment but what a process needs.
pub fn perennial() -> Command {
    // Another build of it, for tests that measure.
    let binary = std::env::var("TEST_BINARY").ok();
    build(binary.as_deref().unwrap_or(env!("CARGO_BIN_EXE_perennial")))
}

/// Some build of it.
pub fn build(binary: &str) -> Command {
    let mut command = Command::new(binary);
    command
        .env_clear()
        .env("PERENNIAL_LOG_FORMAT", "text")
        .stdin(Stdio::null());
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Runs a command to its end.
pub fn run(variables: &Variables, arguments: &[&str]) -> Output {
    perennial()
        .args(arguments)
        .envs(variables)
        .output()
        .unwrap()
}

/// Runs a command that must succeed; answers what it printed.
pub fn run_ok(variables: &Variables, arguments: &[&str]) -> String {
    let output = run(variables, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail; answers what it said of that.
pub fn run_err(variables: &Variables, arguments: &[&str]) -> String {
    let output = run(variables, arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

/// The limits on rates.
pub const RATES: [&str; 8] = [
    "PERENNIAL_RATE_PER_CLIENT",
    "PERENNIAL_RATE_PER_PEER",
    "PERENNIAL_SIGN_INS_PER_CLIENT",
    "PERENNIAL_SIGN_INS_PER_PEER",
    "PERENNIAL_SIGN_INS_PER_IDENTITY",
    "PERENNIAL_REFUSED_TOKENS_PER_CLIENT",
    "PERENNIAL_REFUSED_TOKENS_PER_PEER",
    "PERENNIAL_REFUSED_TOKENS_PER_SESSION",
];

/// What a sandbox on this database needs, with few connections, so that many fit on one server, and
/// without limits on rates, which only those tests are about that set them.
pub fn sandbox(database_url: &str) -> Variables {
    let mut variables = Variables::from(RATES.map(|name| (name, "0".to_owned())));
    variables.extend([
        ("DATABASE_URL", database_url.to_owned()),
        ("PERENNIAL_MODE", "sandbox".to_owned()),
        ("PERENNIAL_MASTER_KEY", MASTER_KEY.to_owned()),
        ("PERENNIAL_DATABASE_POOL", "4".to_owned()),
        ("PERENNIAL_DATABASE_LANES", "2".to_owned()),
    ]);
    variables
}

/// A running `perennial`.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a command. What it logs is kept and shown if the test fails.
    pub fn spawn(variables: &Variables, arguments: &[&str]) -> Self {
        Self::spawn_build(perennial(), variables, arguments)
    }

    fn spawn_build(mut build: Command, variables: &Variables, arguments: &[&str]) -> Self {
        let random: [u8; 8] = perennial::randomness::Randomness.bytes();
        let log = std::env::temp_dir().join(format!(
            "perennial-test-{:016x}.log",
            u64::from_le_bytes(random)
        ));
        let child = build
            .args(arguments)
            .envs(variables)
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// SIGKILL: no chance to tidy up.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, and wait for the end; whether it ended well.
    pub async fn stop(&mut self) -> bool {
        let id = self.child.id().to_string();
        let killed = Command::new("sh")
            .arg("-c")
            .arg(format!("kill -TERM {id}"))
            .status();
        assert!(killed.unwrap().success());
        wait_until("the process ends", Duration::from_secs(20), async || {
            !self.runs()
        })
        .await;
        self.child.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of process {}\n{}", self.id(), self.log());
        }
        let _ = std::fs::remove_file(&self.log);
    }
}

/// A running `perennial serve`.
pub struct Server {
    pub process: Process,
    pub url: String,
    pub admin_url: String,
}

impl Server {
    /// Starts it and waits until it is ready.
    pub async fn start(variables: &Variables) -> Self {
        let server = Self::spawn(variables);
        server.wait_for("/readyz").await;
        server
    }

    /// Starts it and does not wait.
    pub fn spawn(variables: &Variables) -> Self {
        Self::spawn_at(variables, free_port(), free_port())
    }

    /// Starts another one where this one was, and waits until it is ready.
    pub async fn start_again(&mut self, variables: &Variables) {
        let port = |url: &str| url.rsplit(':').next().unwrap().parse().unwrap();
        *self = Self::spawn_at(variables, port(&self.url), port(&self.admin_url));
        self.wait_for("/readyz").await;
    }

    fn spawn_at(variables: &Variables, port: u16, admin_port: u16) -> Self {
        Self::spawn_build_at(perennial(), variables, port, admin_port)
    }

    /// Another build of it, and does not wait.
    pub fn spawn_build(build: Command, variables: &Variables) -> Self {
        Self::spawn_build_at(build, variables, free_port(), free_port())
    }

    fn spawn_build_at(build: Command, variables: &Variables, port: u16, admin_port: u16) -> Self {
        let mut variables = variables.clone();
        variables.insert("PERENNIAL_LISTEN", format!("127.0.0.1:{port}"));
        variables.insert("PERENNIAL_ADMIN_LISTEN", format!("127.0.0.1:{admin_port}"));
        Self {
            process: Process::spawn_build(build, &variables, &["serve"]),
            url: format!("http://127.0.0.1:{port}"),
            admin_url: format!("http://127.0.0.1:{admin_port}"),
        }
    }

    /// Asks the admin listener.
    pub async fn admin(&self, path: &str) -> reqwest::Result<(u16, String)> {
        let answer = reqwest::get(format!("{}{path}", self.admin_url)).await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Waits until a path of the admin listener answers 200.
    pub async fn wait_for(&self, path: &str) -> Duration {
        let what = format!("{} answers", self.admin_url);
        wait_until(&what, Duration::from_secs(30), async || {
            self.admin(path)
                .await
                .is_ok_and(|(status, _)| status == 200)
        })
        .await
    }
}
