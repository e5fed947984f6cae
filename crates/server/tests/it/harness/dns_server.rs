//! A DNS server whose records the test changes, and processes that use it.

use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
};

use perennial::randomness::Randomness;
use tokio::{net::UdpSocket, task::JoinHandle};

use super::{process::perennial, unique_name};

type Records = Arc<Mutex<BTreeMap<String, Vec<Ipv4Addr>>>>;

/// Answers questions for IPv4 addresses, with a TTL of 0. Other names do not exist.
pub struct DnsServer {
    records: Records,
    /// A `resolv.conf` with this server.
    settings: PathBuf,
    answering: JoinHandle<()>,
}

impl DnsServer {
    /// Listens on port 53 of a random loopback address, which needs the privileges of root.
    pub async fn start() -> Self {
        let [a, b] = Randomness.bytes();
        let address = Ipv4Addr::new(127, 53, a, b.clamp(1, 254));
        let socket = UdpSocket::bind((address, 53)).await.unwrap();
        let settings = std::env::temp_dir().join(unique_name("perennial-resolv-"));
        fs::write(&settings, format!("nameserver {address}\n")).unwrap();
        let records = Records::default();
        let own = records.clone();
        let answering = tokio::spawn(async move {
            let mut question = [0; 512];
            loop {
                let (length, client) = socket.recv_from(&mut question).await.unwrap();
                if let Some(answer) = answer(&question[..length], &own) {
                    let _ = socket.send_to(&answer, client).await;
                }
            }
        });
        Self {
            records,
            settings,
            answering,
        }
    }

    /// Sets the addresses of a name.
    pub fn set(&self, name: &str, addresses: &[Ipv4Addr]) {
        let mut records = self.records.lock().unwrap();
        records.insert(name.to_owned(), addresses.to_vec());
    }

    /// A command that runs the binary under test with this server, in its own mount namespace.
    pub fn perennial(&self) -> Command {
        let binary = perennial();
        let mut command = Command::new("unshare");
        let mount = r#"mount --bind "$0" /etc/resolv.conf && exec "$@""#;
        command.args(["--mount", "sh", "-c", mount]);
        command.arg(&self.settings).arg(binary.get_program());
        command.env_clear();
        for (name, value) in binary.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.answering.abort();
        let _ = fs::remove_file(&self.settings);
    }
}

/// Returns the answer to a question. `None` if it is not a complete one.
fn answer(question: &[u8], records: &Records) -> Option<Vec<u8>> {
    let (header, mut rest) = question.split_at_checked(12)?;
    let mut labels = Vec::new();
    loop {
        let (length, after) = rest.split_first()?;
        if *length == 0 {
            rest = after;
            break;
        }
        let (label, after) = after.split_at_checked(usize::from(*length))?;
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        rest = after;
    }
    let is_ipv4 = rest.get(..2)? == [0, 1];
    // Without additional records of the question.
    let length = question.len() - rest.len() + 4;
    let records = records.lock().unwrap();
    let addresses = records.get(&labels.join("."));
    let code = if addresses.is_some() { 0 } else { 3 };
    let addresses = addresses.filter(|_| is_ipv4).map_or(&[][..], Vec::as_slice);
    // A response, with recursion, to the question with this id.
    let mut answer = vec![header[0], header[1], 0x81, 0x80 | code];
    answer.extend([0, 1, 0, u8::try_from(addresses.len()).unwrap(), 0, 0, 0, 0]);
    answer.extend(&question[12..length]);
    for address in addresses {
        // The name of the question, type A, class IN, TTL 0, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
