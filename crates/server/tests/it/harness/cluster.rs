//! A private PostgreSQL cluster, for tests that stop it or use TLS.

use std::{
    fs::File,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Mutex,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{
    child::{ChildProcess, unprivileged_command, unprivileged_ids},
    reserve_port, unique_name,
};

/// Recovery after a crash can take a while on a busy machine.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A private cluster. Runs as the user `postgres` if the tests run as root, because PostgreSQL
/// refuses to run as root.
pub struct Cluster {
    folder: PathBuf,
    bin: PathBuf,
    pub port: u16,
    /// The running server. A child rather than the process in `postmaster.pid`, which may be that of
    /// a server that has exited.
    server: Mutex<Option<ChildProcess>>,
}

impl Cluster {
    /// Starts a cluster that does not wait for the disk: tests crash the server, but not the machine.
    pub fn start() -> Self {
        Self::start_with(&["fsync = off"])
    }

    /// Starts a cluster that waits for the disk and fits many rows, for tests that measure time.
    pub fn start_for_measurement() -> Self {
        Self::start_with(&["shared_buffers = '1GB'", "max_wal_size = '8GB'"])
    }

    /// Starts a cluster whose [log](Self::log) has each statement.
    pub fn start_with_statement_log() -> Self {
        Self::start_with(&["fsync = off", "log_statement = 'all'"])
    }

    /// Returns what the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap()
    }

    /// Copies the files of the running cluster, as for a standby. The copy is not started.
    pub fn copy(&self) -> Self {
        let copy = Self::create_folder();
        let port = self.port.to_string();
        let mut backup = copy.program("pg_basebackup");
        backup.args([
            "--no-sync",
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
            "-p",
            &port,
        ]);
        assert_success(
            &backup
                .args(["-c", "fast", "-X", "stream"])
                .output()
                .unwrap(),
        );
        let path = copy.data().join("postgresql.auto.conf");
        let text = std::fs::read_to_string(&path).unwrap();
        let own = format!("port = {}", copy.port);
        std::fs::write(&path, text.replace(&format!("port = {port}"), &own)).unwrap();
        copy
    }

    /// Starts a copy as a standby and promotes it, as a failover does. Commits after the copy are lost.
    pub async fn promote(&self) {
        std::fs::write(self.data().join("standby.signal"), "").unwrap();
        self.resume();
        let client = super::database::connect(&self.url()).await;
        let promoted = client.query_one("SELECT pg_promote()", &[]).await.unwrap();
        assert!(promoted.get::<_, bool>(0));
    }

    /// Creates the folder of a cluster without data.
    fn create_folder() -> Self {
        let folder = Path::new("/var/tmp").join(unique_name("perennial-cluster-"));
        let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
            .unwrap()
            .map(|entry| entry.unwrap().path().join("bin"))
            .collect();
        versions.sort();
        let cluster = Self {
            folder,
            bin: versions.pop().unwrap(),
            port: reserve_port(),
            server: Mutex::new(None),
        };
        std::fs::create_dir(&cluster.folder).unwrap();
        if let Some((user_id, group_id)) = unprivileged_ids("postgres") {
            std::os::unix::fs::chown(&cluster.folder, Some(user_id), Some(group_id)).unwrap();
        }
        cluster
    }

    fn start_with(settings: &[&str]) -> Self {
        let cluster = Self::create_folder();
        let options = "--no-sync -U postgres -A trust -E UTF8 --locale=C.UTF-8";
        let mut initdb = cluster.program("initdb");
        assert_success(&initdb.args(options.split(' ')).output().unwrap());
        let mut lines = vec![
            format!("port = {}", cluster.port),
            "listen_addresses = '127.0.0.1'".to_owned(),
            "unix_socket_directories = ''".to_owned(),
        ];
        lines.extend(settings.iter().map(|line| (*line).to_owned()));
        let path = cluster.data().join("postgresql.auto.conf");
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
        cluster.resume();
        cluster
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Stops it without a checkpoint, as a crash would.
    pub fn stop(&self) {
        if let Some(mut server) = self.server.lock().unwrap().take() {
            // On SIGQUIT, the server ends its processes and then itself.
            server.signal(Signal::QUIT);
            server.wait();
        }
    }

    /// Starts it again and waits until it accepts connections.
    pub fn resume(&self) {
        let mut options = File::options();
        let log = options.create(true).append(true);
        let log = log.open(self.folder.join("log")).unwrap();
        let mut command = self.program("postgres");
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let mut server = ChildProcess::spawn(&mut command);
        let started = Instant::now();
        while !self.is_ready(server.id()) {
            assert!(
                server.exit_status().is_none() && started.elapsed() < START_TIMEOUT,
                "PostgreSQL does not start: {}\n{}",
                server.describe(),
                std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        *self.server.lock().unwrap() = Some(server);
    }

    /// Returns whether this process accepts connections, as `pg_ctl --wait` does.
    fn is_ready(&self, server_id: u32) -> bool {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_ready = ["ready", "standby"]
            .map(Some)
            .contains(&lines.get(7).copied());
        lines.first() == Some(&server_id.to_string().as_str()) && is_ready
    }

    /// Returns a backend, or `None` if it has exited.
    pub fn backend(&self, id: i32) -> Option<Backend> {
        let pid = Pid::from_raw(id).unwrap();
        let backend = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Read after opening: if the id is reused, `backend` is a process that has exited.
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let server = self.server.lock().unwrap();
        let parent = format!("PPid:\t{}", server.as_ref()?.id());
        status
            .lines()
            .any(|line| line == parent)
            .then_some(Backend(backend))
    }

    /// Restarts it with TLS and returns its self-signed certificate for `localhost`.
    pub fn enable_tls(&self) -> PathBuf {
        let (key, certificate) = (
            self.data().join("server.key"),
            self.data().join("server.crt"),
        );
        let output = self
            .as_owner("openssl")
            .args([
                "req",
                "-new",
                "-x509",
                "-days",
                "2",
                "-nodes",
                "-subj",
                "/CN=localhost",
            ])
            .args([
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert_success(&output);
        assert_success(
            &self
                .as_owner("chmod")
                .arg("600")
                .arg(&key)
                .output()
                .unwrap(),
        );
        let configuration = self.data().join("postgresql.auto.conf");
        let text = std::fs::read_to_string(&configuration).unwrap();
        std::fs::write(&configuration, text + "ssl = on\n").unwrap();
        self.stop();
        self.resume();
        certificate
    }

    /// One of PostgreSQL's programs on this cluster.
    fn program(&self, name: &str) -> Command {
        let mut command = self.as_owner(self.bin.join(name).to_str().unwrap());
        command.arg("-D").arg(self.data());
        command
    }

    fn as_owner(&self, program: &str) -> Command {
        let mut command = unprivileged_command("postgres", program);
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A server process of one connection. The descriptor identifies the process even after its id is
/// reused.
pub struct Backend(OwnedFd);

impl Backend {
    /// Sends a signal unless the process has exited.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
