//! The real binary as a child process that ends with the test.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{child::ChildProcess, reserve_port, unique_name, wait_until};

/// The master key of all test databases.
pub const MASTER_KEY: &str = "dGVzdHMgb25seTogYSBrZXkgdGhhdCBpcyBubyBrZXk";

/// Environment variables.
pub type Variables = BTreeMap<&'static str, String>;

/// A command that runs the binary under test with an empty environment, except for PATH and HOME.
pub fn perennial() -> Command {
    // Tests that measure can run a release build.
    let binary = std::env::var("TEST_BINARY").ok();
    command_for(binary.as_deref().unwrap_or(env!("CARGO_BIN_EXE_perennial")))
}

/// A command that runs another build of the binary.
pub fn command_for(binary: &str) -> Command {
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

/// Runs a command that must succeed and returns its standard output.
pub fn run_ok(variables: &Variables, arguments: &[&str]) -> String {
    let output = run(variables, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail and returns its standard error.
pub fn run_err(variables: &Variables, arguments: &[&str]) -> String {
    let output = run(variables, arguments);
    assert!(!output.status.success(), "{arguments:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

/// The settings of all rate limits.
pub const RATE_LIMIT_KEYS: [&str; 8] = [
    "PERENNIAL_RATE_PER_CLIENT",
    "PERENNIAL_RATE_PER_PEER",
    "PERENNIAL_SIGN_INS_PER_CLIENT",
    "PERENNIAL_SIGN_INS_PER_PEER",
    "PERENNIAL_SIGN_INS_PER_IDENTITY",
    "PERENNIAL_REFUSED_TOKENS_PER_CLIENT",
    "PERENNIAL_REFUSED_TOKENS_PER_PEER",
    "PERENNIAL_REFUSED_TOKENS_PER_SESSION",
];

/// The environment of a sandbox on this database: few connections, so that many instances fit on
/// one PostgreSQL server, and no rate limits.
pub fn sandbox(database_url: &str) -> Variables {
    let mut variables = Variables::from(RATE_LIMIT_KEYS.map(|name| (name, "0".to_owned())));
    variables.extend([
        ("DATABASE_URL", pooled_url(database_url)),
        ("PERENNIAL_MODE", "sandbox".to_owned()),
        ("PERENNIAL_MASTER_KEY", MASTER_KEY.to_owned()),
        // The host that raw requests name.
        ("PERENNIAL_ALLOWED_HOSTS", "x".to_owned()),
        ("PERENNIAL_DATABASE_POOL", "4".to_owned()),
        ("PERENNIAL_DATABASE_LANES", "2".to_owned()),
        // Nothing listens there: tests never call the real payment providers.
        ("PERENNIAL_STRIPE_API_BASE", "http://127.0.0.1:1".to_owned()),
        (
            "PERENNIAL_LEMON_SQUEEZY_API_BASE",
            "http://127.0.0.1:1".to_owned(),
        ),
    ]);
    variables
}

/// Returns the URL of a database through the connection pooler that `tools/pgbouncer` starts, or the URL
/// itself without a pooler or on another server.
fn pooled_url(database_url: &str) -> String {
    let (Ok(server), Ok(pooler)) = (
        std::env::var("TEST_DATABASE_URL"),
        std::env::var("TEST_POOLER"),
    ) else {
        return database_url.to_owned();
    };
    let (server, _) = server.rsplit_once('/').unwrap();
    let (credentials, _) = server.rsplit_once('@').unwrap();
    match database_url.strip_prefix(server) {
        Some(database) => format!("{credentials}@{pooler}{database}"),
        None => database_url.to_owned(),
    }
}

/// A running `perennial`.
pub struct Process {
    child: ChildProcess,
    log: PathBuf,
}

impl Process {
    /// Starts a command. Its log is printed if the test fails.
    pub fn spawn(variables: &Variables, arguments: &[&str]) -> Self {
        Self::spawn_command(perennial(), variables, arguments)
    }

    /// Starts a command that runs the binary.
    pub fn spawn_command(mut command: Command, variables: &Variables, arguments: &[&str]) -> Self {
        let log = std::env::temp_dir().join(unique_name("perennial-test-") + ".log");
        command
            .args(arguments)
            .envs(variables)
            .stderr(File::create(&log).unwrap());
        let child = ChildProcess::spawn(&mut command);
        Self { child, log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.exit_status().is_none()
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Sends SIGTERM and waits for the exit. Returns whether the process exited successfully.
    pub async fn stop(&mut self) -> bool {
        self.stop_with(Signal::TERM).await
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the exit. Returns whether the process exited successfully.
    pub async fn interrupt(&mut self) -> bool {
        self.stop_with(Signal::INT).await
    }

    async fn stop_with(&mut self, signal: Signal) -> bool {
        self.child.signal(signal);
        wait_until("the process exits", Duration::from_secs(20), async || {
            !self.is_running()
        })
        .await;
        self.child.wait().success()
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
    /// Starts a server and waits until it is ready.
    pub async fn start(variables: &Variables) -> Self {
        let server = Self::spawn(variables);
        server.wait_for_ok("/readyz").await;
        server
    }

    /// Starts a server without waiting for it.
    pub fn spawn(variables: &Variables) -> Self {
        Self::spawn_command(perennial(), variables)
    }

    /// Starts another build of the server without waiting for it.
    pub fn spawn_command(command: Command, variables: &Variables) -> Self {
        Self::spawn_at(command, variables, reserve_port(), reserve_port())
    }

    /// Replaces this server by a new one on the same ports and waits until that is ready.
    pub async fn restart(&mut self, variables: &Variables) {
        let port = |url: &str| url.rsplit(':').next().unwrap().parse().unwrap();
        let (port, admin_port) = (port(&self.url), port(&self.admin_url));
        self.process.kill();
        *self = Self::spawn_at(perennial(), variables, port, admin_port);
        self.wait_for_ok("/readyz").await;
    }

    fn spawn_at(command: Command, variables: &Variables, port: u16, admin_port: u16) -> Self {
        let mut variables = variables.clone();
        variables.insert("PERENNIAL_LISTEN", format!("127.0.0.1:{port}"));
        variables.insert("PERENNIAL_ADMIN_LISTEN", format!("127.0.0.1:{admin_port}"));
        Self {
            process: Process::spawn_command(command, &variables, &["serve"]),
            url: format!("http://127.0.0.1:{port}"),
            admin_url: format!("http://127.0.0.1:{admin_port}"),
        }
    }

    /// Sends a GET request to the admin listener and returns the status and the body.
    pub async fn admin(&self, path: &str) -> io::Result<(u16, String)> {
        http_get(&self.admin_url, path).await
    }

    /// Returns the value of a metric: the first line that starts with `series`.
    pub async fn metric(&self, series: &str) -> Option<f64> {
        let (_, metrics) = self.admin("/metrics").await.unwrap();
        let line = metrics.lines().find(|line| line.starts_with(series))?;
        Some(line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// Returns how many pooled connections (`pool`) or pipelined reads (`lane`) requests have used.
    pub async fn database_uses(&self, way: &str) -> i64 {
        let (_, metrics) = self.admin("/metrics").await.unwrap();
        let (series, label) = (
            "perennial_database_wait_seconds_count",
            format!("\"{way}\""),
        );
        let is_count = |line: &&str| line.starts_with(series) && line.contains(&label);
        let line = metrics.lines().find(is_count).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Waits until a path of the admin listener returns 200.
    pub async fn wait_for_ok(&self, path: &str) {
        let what = format!("200 from {}{path}", self.admin_url);
        wait_until(&what, Duration::from_secs(30), async || {
            self.admin(path)
                .await
                .is_ok_and(|(status, _)| status == 200)
        })
        .await;
    }
}

/// Sends a GET request over a new connection. Much cheaper than a [`reqwest::Client`], which matters
/// while polling.
pub async fn http_get(url: &str, path: &str) -> io::Result<(u16, String)> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((status, body.to_owned()))
}
