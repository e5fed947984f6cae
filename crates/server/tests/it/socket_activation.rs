//! Socket activation: the API's socket is opened by systemd and outlives the service.
//!
//! The test takes the part of systemd: it opens the socket, and passes it as file descriptor 3.
//! `tools/systemd` runs the real one.

use std::{
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixListener},
    process::{Command, Stdio},
    time::Duration,
};

use crate::harness::{
    process::{Process, Variables, http_get, perennial},
    reserve_port,
    service::Service,
    unique_name, wait_until,
};

/// Runs `perennial serve` with file descriptors from 3 on that are copies of `socket`, as systemd does.
fn with_sockets(socket: OwnedFd, count: usize) -> Command {
    let copies: Vec<String> = (3..3 + count)
        .map(|number| format!("{number}<&0"))
        .collect();
    let copies = copies.join(" ");
    let script = format!("LISTEN_FDS={count} LISTEN_PID=$$ exec \"$@\" {copies} 0</dev/null");
    let binary = perennial();
    let mut command = Command::new("sh");
    command.env_clear();
    for (name, value) in binary.get_envs() {
        command.env(name, value.unwrap());
    }
    command
        .args(["-c", &script, "sh"])
        .arg(binary.get_program())
        .stdin(Stdio::from(socket));
    command
}

async fn wait_until_ready(admin_port: u16) {
    let admin = format!("http://127.0.0.1:{admin_port}");
    wait_until(
        "the service is ready",
        Duration::from_secs(30),
        async || {
            let response = http_get(&admin, "/readyz").await;
            response.is_ok_and(|(status, _)| status == 200)
        },
    )
    .await;
}

fn variables(service: &Service, listen: &str, admin_port: u16) -> Variables {
    let mut variables = service.variables.clone();
    variables.insert("PERENNIAL_LISTEN", listen.to_owned());
    variables.insert("PERENNIAL_ADMIN_LISTEN", format!("127.0.0.1:{admin_port}"));
    variables
}

/// Returns the error of a service that does not start.
fn start_error(mut command: Command, variables: &Variables) -> String {
    let output = command.arg("serve").envs(variables).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn connection_during_a_restart_waits_for_the_next_process() {
    let service = Service::start().await;
    let socket = TcpListener::bind(("127.0.0.1", reserve_port())).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let admin_port = reserve_port();
    let variables = variables(&service, &address, admin_port);
    let start = || {
        let socket = socket.try_clone().unwrap();
        Process::spawn_command(with_sockets(socket.into(), 1), &variables, &["serve"])
    };
    let url = format!("http://{address}");

    let mut first = start();
    wait_until_ready(admin_port).await;
    assert_eq!(http_get(&url, "/openapi.json").await.unwrap().0, 200);
    assert!(first.log().contains("using the socket that systemd passed"));
    assert!(first.stop().await, "{}", first.log());

    // No process accepts it, and the kernel does not refuse it.
    let waiting = tokio::spawn(async move { http_get(&url, "/openapi.json").await });
    let queued = format!("127.0.0.1:{}", socket.local_addr().unwrap().port());
    wait_until(
        "the connection is open",
        Duration::from_secs(10),
        async || tokio::net::TcpStream::connect(&queued).await.is_ok(),
    )
    .await;
    assert!(!waiting.is_finished());
    let _second = start();
    assert_eq!(waiting.await.unwrap().unwrap().0, 200);
}

#[tokio::test]
async fn passed_socket_that_does_not_match_the_settings_is_an_error() {
    let service = Service::start().await;
    let socket = TcpListener::bind(("127.0.0.1", reserve_port())).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let copy = || socket.try_clone().unwrap().into();

    let other = format!("127.0.0.1:{}", reserve_port());
    let variables_of_other = variables(&service, &other, reserve_port());
    let error = start_error(with_sockets(copy(), 1), &variables_of_other);
    let expected = format!("a socket for {address}, but PERENNIAL_LISTEN is {other}");
    assert!(error.contains(&expected), "{error}");

    let variables = variables(&service, &address, reserve_port());
    let error = start_error(with_sockets(copy(), 2), &variables);
    assert!(error.contains("systemd passed 2 sockets"), "{error}");

    let path = std::env::temp_dir().join(unique_name("perennial-socket-"));
    let unix_socket = UnixListener::bind(&path).unwrap();
    let error = start_error(with_sockets(unix_socket.into(), 1), &variables);
    std::fs::remove_file(&path).unwrap();
    assert!(error.contains("not a TCP socket"), "{error}");
}

/// The variables of a parent process that itself was started by systemd are for another process.
#[tokio::test]
async fn sockets_of_another_process_are_ignored() {
    let service = Service::start().await;
    let admin_port = reserve_port();
    let listen = format!("127.0.0.1:{}", reserve_port());
    let mut variables = variables(&service, &listen, admin_port);
    variables.insert("LISTEN_FDS", "1".to_owned());
    variables.insert("LISTEN_PID", "1".to_owned());
    let process = Process::spawn(&variables, &["serve"]);
    wait_until_ready(admin_port).await;
    let status = http_get(&format!("http://{listen}"), "/openapi.json").await;
    assert_eq!(status.unwrap().0, 200);
    assert!(!process.log().contains("systemd passed"));
}
