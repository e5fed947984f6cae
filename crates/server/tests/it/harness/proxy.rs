//! A wire between an instance and its database on which one can stand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::free_port;

/// Passes everything on, but holds back what belongs to sessions of one name while told to: nothing arrives, and
/// nobody is told.
pub struct Wire {
    pub port: u16,
    holds: Arc<AtomicBool>,
}

impl Wire {
    /// To this port; `name` is the `application_name` of the sessions that can be held back.
    pub async fn to(port: u16, name: &'static str) -> Self {
        let own = free_port();
        let listener = TcpListener::bind(("127.0.0.1", own)).await.unwrap();
        let holds = Arc::new(AtomicBool::new(false));
        let told = holds.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else {
                    continue;
                };
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = far.into_split();
                let ours = Arc::new(AtomicBool::new(false));
                let (told, other_told) = (told.clone(), told.clone());
                tokio::spawn(pass(near_in, far_out, ours.clone(), told, Some(name)));
                tokio::spawn(pass(far_in, near_out, ours, other_told, None));
            }
        });
        Self { port: own, holds }
    }

    /// Holds them back from now on, or lets go.
    pub fn hold(&self, hold: bool) {
        self.holds.store(hold, Ordering::SeqCst);
    }
}

/// One direction. The direction from the client learns by the first message whether the session is of that name.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    ours: Arc<AtomicBool>,
    holds: Arc<AtomicBool>,
    name: Option<&'static str>,
) {
    let mut part = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut part).await {
        let bytes = &part[..length];
        if name.is_some_and(|name| bytes.windows(name.len()).any(|at| at == name.as_bytes())) {
            ours.store(true, Ordering::SeqCst);
        }
        while ours.load(Ordering::SeqCst) && holds.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
