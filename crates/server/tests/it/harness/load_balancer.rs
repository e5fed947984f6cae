//! haproxy as a load balancer in front of instances.

use std::{fmt::Write, fs::File, path::PathBuf, process::Stdio};

use super::{
    child::{ChildProcess, unprivileged_command},
    process::Server,
    reserve_port, unique_name,
};

/// A running haproxy: round robin, a readiness check every 100 ms, and the serving instance (`i0`,
/// `i1`, …) in the header `x-served-by`.
pub struct LoadBalancer {
    child: ChildProcess,
    folder: PathBuf,
    pub url: String,
}

impl LoadBalancer {
    pub fn start(servers: &[Server]) -> Self {
        let folder = std::env::temp_dir().join(unique_name("perennial-haproxy-"));
        std::fs::create_dir(&folder).unwrap();
        let port = reserve_port();
        // haproxy must close idle connections before the service does, after 10 s.
        let mut text = format!(
            "global\n    maxconn 500\n\
             defaults\n    mode http\n    timeout connect 5s\n    timeout check 5s\n    timeout client 30s\n    timeout server 30s\n\
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
        let mut command = unprivileged_command("nobody", "haproxy");
        let log = File::create(folder.join("log")).unwrap();
        command
            .args(["-db", "-f"])
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        let child = ChildProcess::spawn(&mut command);
        Self {
            child,
            folder,
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

fn port_of(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        self.child.kill();
        if std::thread::panicking() {
            eprintln!("--- log of haproxy\n{}", self.log());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
