//! A NATS server with JetStream, and the streams in it.

use std::{fs::File, path::PathBuf, process::Stdio, time::Duration};

use async_nats::jetstream::{
    self, context::GetStreamErrorKind, message::StreamMessage, stream::Stream,
};

use super::{
    child::{ChildProcess, unprivileged_command, unprivileged_ids},
    reserve_port, unique_name, wait_until,
};

/// A running nats-server that stores its streams on disk.
pub struct NatsServer {
    child: ChildProcess,
    folder: PathBuf,
    port: u16,
}

impl NatsServer {
    pub async fn start() -> Self {
        let folder = std::env::temp_dir().join(unique_name("perennial-nats-"));
        std::fs::create_dir(&folder).unwrap();
        if let Some((user_id, group_id)) = unprivileged_ids("nobody") {
            std::os::unix::fs::chown(&folder, Some(user_id), Some(group_id)).unwrap();
        }
        let port = reserve_port();
        let server = Self {
            child: spawn(&folder, port),
            folder,
            port,
        };
        server.wait_until_ready().await;
        server
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills the server and starts it again.
    pub async fn restart(&mut self) {
        self.child.kill();
        self.child = spawn(&self.folder, self.port);
        self.wait_until_ready().await;
    }

    async fn wait_until_ready(&self) {
        wait_until("NATS responds", Duration::from_secs(20), async || {
            let Ok(client) = async_nats::connect(self.url()).await else {
                return false;
            };
            // JetStream responds that the stream does not exist.
            let found = jetstream::new(client).get_stream("NONE").await;
            matches!(found, Err(error) if matches!(error.kind(), GetStreamErrorKind::JetStream(_)))
        })
        .await;
    }

    /// Returns a stream, or `None` if it does not exist.
    pub async fn stream(&self, name: &str) -> Option<Stream> {
        let client = async_nats::connect(self.url()).await.ok()?;
        jetstream::new(client).get_stream(name).await.ok()
    }

    /// Returns the number of messages that were ever stored in a stream.
    pub async fn last_sequence(&self, name: &str) -> u64 {
        let stream = self.stream(name).await;
        stream.map_or(0, |stream| stream.cached_info().state.last_sequence)
    }

    /// Returns all messages of a stream, oldest first.
    pub async fn messages(&self, name: &str) -> Vec<StreamMessage> {
        let stream = self.stream(name).await.unwrap();
        let state = &stream.cached_info().state;
        let mut messages = Vec::new();
        for sequence in state.first_sequence..=state.last_sequence {
            messages.push(stream.get_raw_message(sequence).await.unwrap());
        }
        messages
    }
}

fn spawn(folder: &std::path::Path, port: u16) -> ChildProcess {
    let mut options = File::options();
    let log = options.create(true).append(true).open(folder.join("log"));
    let log = log.unwrap();
    let mut command = unprivileged_command("nobody", "nats-server");
    command
        .args(["--jetstream", "--addr", "127.0.0.1", "--port"])
        .arg(port.to_string())
        .arg("--store_dir")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    ChildProcess::spawn(&mut command)
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.child.kill();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.join("log"));
            eprintln!("--- log of nats-server\n{}", log.unwrap_or_default());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
