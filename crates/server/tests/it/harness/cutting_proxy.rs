//! A TCP proxy that can cut all of its connections.

use std::sync::Arc;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::reserve_port;

/// Forwards all bytes between its own port and another one.
pub struct CuttingProxy {
    pub url: String,
    cuts: Arc<watch::Sender<u64>>,
}

impl CuttingProxy {
    /// Starts a proxy to the server at `url`.
    pub async fn start(url: &str) -> Self {
        let address = url.trim_start_matches("http://").to_owned();
        let port = reserve_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let cuts = Arc::new(watch::Sender::new(0));
        let sender = cuts.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (address, mut cut) = (address.clone(), sender.subscribe());
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(&address).await else {
                        return;
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self {
            url: format!("http://127.0.0.1:{port}"),
            cuts,
        }
    }

    /// Closes all open connections.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}
