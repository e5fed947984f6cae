//! A PostgreSQL server of the test's own, to be stopped, killed and spoken to over TLS.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use super::free_port;

/// A private cluster. Runs as the user `postgres` where the tests run as root, because PostgreSQL
/// refuses root.
pub struct Cluster {
    folder: PathBuf,
    bin: PathBuf,
    pub port: u16,
}

impl Cluster {
    /// Makes one and starts it.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further lines in its configuration.
    pub fn start_with(settings: &[&str]) -> Self {
        let random: [u8; 8] = perennial::randomness::Randomness.bytes();
        let folder = Path::new("/var/tmp").join(format!(
            "perennial-cluster-{:016x}",
            u64::from_le_bytes(random)
        ));
        let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
            .unwrap()
            .map(|entry| entry.unwrap().path().join("bin"))
            .collect();
        versions.sort();
        let cluster = Self {
            folder,
            bin: versions.pop().unwrap(),
            port: free_port(),
        };
        std::fs::create_dir(&cluster.folder).unwrap();
        if is_root() {
            Self::done(
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

    /// Ends it at once, as a crash would.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-m", "immediate", "-w", "stop"]);
    }

    /// Starts it again; answers when it accepts connections.
    pub fn resume(&self) {
        let log = self.folder.join("log");
        self.run("pg_ctl", &["-w", "-l", log.to_str().unwrap(), "start"]);
    }

    /// Writes a certificate that it signed itself for `localhost`, and speaks TLS from now on.
    pub fn speak_tls(&self) -> PathBuf {
        let (key, certificate) = (
            self.data().join("server.key"),
            self.data().join("server.crt"),
        );
        let made = self
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
        Self::done(&made);
        Self::done(
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

    /// Runs one of PostgreSQL's own programs on this cluster.
    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = self.as_owner(self.bin.join(program).to_str().unwrap());
        Self::done(
            &command
                .arg("-D")
                .arg(self.data())
                .args(arguments)
                .output()
                .unwrap(),
        );
    }

    fn as_owner(&self, program: &str) -> Command {
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", program]);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(&self.folder);
        command
    }

    fn done(output: &Output) {
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
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
