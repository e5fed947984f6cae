//! A private PostgreSQL cluster, for tests that stop it or use TLS.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::{reserve_port, unique_name};

/// A private cluster. Runs as the user `postgres` if the tests run as root, because PostgreSQL
/// refuses to run as root.
pub struct Cluster {
    folder: PathBuf,
    bin: PathBuf,
    pub port: u16,
}

impl Cluster {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a cluster with further lines in its configuration.
    pub fn start_with(settings: &[&str]) -> Self {
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
        };
        std::fs::create_dir(&cluster.folder).unwrap();
        if is_root() {
            assert_success(
                &Command::new("chown")
                    .arg("postgres")
                    .arg(&cluster.folder)
                    .output()
                    .unwrap(),
            );
        }
        cluster.run(
            "initdb",
            &[
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ],
        );
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
        self.run("pg_ctl", &["-m", "immediate", "-w", "stop"]);
    }

    /// Starts it again and waits until it accepts connections.
    pub fn resume(&self) {
        let log = self.folder.join("log");
        self.run("pg_ctl", &["-w", "-l", log.to_str().unwrap(), "start"]);
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

    /// Runs one of PostgreSQL's programs on this cluster.
    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = self.as_owner(self.bin.join(program).to_str().unwrap());
        assert_success(
            &command
                .arg("-D")
                .arg(self.data())
                .args(arguments)
                .output()
                .unwrap(),
        );
    }

    fn as_owner(&self, program: &str) -> Command {
        let mut command = unprivileged_command("postgres", program);
        command.current_dir(&self.folder);
        command
    }
}

fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// A command that runs as an unprivileged user if the tests run as root.
pub fn unprivileged_command(user: &str, program: &str) -> Command {
    if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", user, "--", program]);
        command
    } else {
        Command::new(program)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut command = self.as_owner(self.bin.join("pg_ctl").to_str().unwrap());
        let _ = command
            .arg("-D")
            .arg(self.data())
            .args(["-m", "immediate", "stop"])
            .output();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
