//! A socket that does not wait for ever on its peer.
//!
//! A peer that sends no request, or half of its header, or does not read its answer would keep a connection and its
//! buffers for as long as it likes. hyper has a limit for headers, but sets and clears a timer for each; here one
//! timer lasts for the whole connection, and when it rings it is looked how long the peer has had its turn. And a
//! connection that is closed while the peer is still sending (a body that is too large, a header that is no header) is
//! reset by the system, which can take the answer from under the peer's eyes; so a close says
//! goodbye first and then listens for a moment.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep, sleep_until},
};

/// How long a peer may take to send its next request's header.
const SILENT: Duration = Duration::from_secs(10);

/// How long a peer may leave its answer unread.
const STALLED: Duration = Duration::from_secs(10);
/// How long we listen after we have said goodbye.
const LINGER: Duration = Duration::from_secs(1);

/// Whose turn it is on a connection: ours while a request is served, else the peer's.
#[derive(Clone)]
pub struct Turn(Arc<Since>);

struct Since {
    connected: Instant,
    /// Since how many nanoseconds after that it has been the peer's turn; [`OURS`] or [`ANSWERED`] if it is not.
    peers: AtomicU64,
}

/// A request is being served.
const OURS: u64 = u64::MAX;
/// Its answer is about to be written.
const ANSWERED: u64 = u64::MAX - 1;

impl Turn {
    /// The peer's, as of now: it connects and sends.
    pub fn of_peer() -> Self {
        Self(Arc::new(Since {
            connected: Instant::now(),
            peers: AtomicU64::new(0),
        }))
    }

    /// A request has come.
    pub fn is_ours(&self) {
        self.0.peers.store(OURS, Ordering::Relaxed);
    }

    /// The request is answered.
    pub fn is_over(&self) {
        self.0.peers.store(ANSWERED, Ordering::Relaxed);
    }

    /// Something was written: the peer has to read it. A long answer takes its time; what is written before there is
    /// one asks for the rest of the request, and leaves the turn to us.
    fn has_written(&self) {
        if self.0.peers.load(Ordering::Relaxed) != OURS {
            let nanos = self.0.connected.elapsed().as_nanos();
            let nanos = u64::try_from(nanos).unwrap_or(ANSWERED);
            self.0.peers.store(nanos, Ordering::Relaxed);
        }
    }

    fn since(&self) -> Option<Instant> {
        let nanos = self.0.peers.load(Ordering::Relaxed);
        (nanos < ANSWERED).then(|| self.0.connected + Duration::from_nanos(nanos))
    }
}

/// A socket with limits on the peer's patience.
pub struct Socket {
    stream: TcpStream,
    turn: Turn,
    silent: Pin<Box<Sleep>>,
    stalled: Option<Pin<Box<Sleep>>>,
    lingering: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    /// Puts the limits around a stream.
    pub fn new(stream: TcpStream, turn: Turn) -> Self {
        Self {
            stream,
            turn,
            silent: Box::pin(sleep(SILENT)),
            stalled: None,
            lingering: None,
        }
    }

    /// What a write came to, unless it has been waiting for too long.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            self.turn.has_written();
            return written;
        }
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            return read;
        }
        while self.silent.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            // While it is our turn, the peer has all its time before it.
            let until = self.turn.since().unwrap_or(now) + SILENT;
            if until <= now {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.silent.set(sleep_until(until));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.lingering = Some(Box::pin(sleep(LINGER)));
        }
        let mut dropped = [0; 4096];
        loop {
            if let Some(timer) = &mut self.lingering
                && timer.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(Ok(()));
            }
            let mut buf = ReadBuf::new(&mut dropped);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
