//! A load balancer in front of instances: haproxy, as operators use it.

use std::{
    fmt::Write,
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use super::{cluster::is_root, free_port, process::Server};

/// A running haproxy. It asks each instance every 100 ms whether it is ready, takes turns, and says in `x-served-by`
/// whose answer one gets: `i0`, `i1`, ….
pub struct Balancer {
    child: Child,
    folder: PathBuf,
    pub url: String,
}

impl Balancer {
    pub fn before(servers: &[Server]) -> Self {
        let random: [u8; 8] = perennial::randomness::Randomness.bytes();
        let name = format!("perennial-haproxy-{:016x}", u64::from_le_bytes(random));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let port = free_port();
        // Whoever keeps connections open must let go of them before the service does, which is after 10 s.
        let mut text = format!(
            "global\n    maxconn 500\n\
             defaults\n    mode http\n    timeout connect 1s\n    timeout client 30s\n    timeout server 30s\n\
             frontend all\n    bind 127.0.0.1:{port}\n    default_backend instances\n\
             backend instances\n    balance roundrobin\n    option httpchk GET /readyz\n    \
             option forwardfor\n    http-response set-header x-served-by %s\n    \
             default-server check inter 100ms fall 1 rise 1 pool-purge-delay 4s\n"
        );
        let address = |url: &str| url.trim_start_matches("http://").to_owned();
        for (index, server) in servers.iter().enumerate() {
            let (own, admin) = (address(&server.url), address(&server.admin_url));
            writeln!(
                text,
                "    server i{index} {own} addr 127.0.0.1 port {}",
                port_of(&admin)
            )
            .unwrap();
        }
        let configuration = folder.join("haproxy.cfg");
        std::fs::write(&configuration, text).unwrap();
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "nobody", "--", "haproxy"]);
            command
        } else {
            Command::new("haproxy")
        };
        let log = File::create(folder.join("log")).unwrap();
        let child = command
            .args(["-db", "-f"])
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("haproxy, which tools/setup installs");
        Self {
            child,
            folder,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

fn port_of(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // runuser passes a SIGTERM on, and a SIGKILL not.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of haproxy\n{}", self.log());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
