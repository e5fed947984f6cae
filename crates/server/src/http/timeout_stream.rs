//! A TCP stream that times out when its peer does not send or read.
//!
//! hyper's `header_read_timeout` starts when the previous response has been buffered, not when it has
//! been sent: it would disconnect a client that takes more than 10 seconds to download a large response.
//! It also creates a timer per request; here one timer per connection checks which phase the connection
//! is in.
//!
//! If a socket is closed while the peer is still sending, the kernel sends a reset, which can discard a
//! response (such as 413) that the peer has not read yet. So closing shuts down the write side and then
//! reads for a moment (lingering close).

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

/// How long the header of the next request may take to arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a write may take to make progress.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to read after the write side is shut down.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether a connection waits for its peer, shared between the stream and the request handler.
#[derive(Clone)]
pub struct ConnectionPhase(Arc<PhaseState>);

struct PhaseState {
    connected_at: Instant,
    /// Nanoseconds after `connected_at` since when the connection waits for a request, or for its peer
    /// to read the rest of a response; [`HANDLING`], [`RESPONDING`], [`RECEIVING`] or [`STREAMING`] otherwise.
    waiting_since: AtomicU64,
}

/// A request is being handled.
const HANDLING: u64 = u64::MAX;
/// A response is about to be written.
const RESPONDING: u64 = u64::MAX - 1;
/// The body of a request has not arrived yet.
const RECEIVING: u64 = u64::MAX - 2;
/// A response of unknown length is being written, with pauses between its parts.
const STREAMING: u64 = u64::MAX - 3;

impl ConnectionPhase {
    /// Creates the phase of a new connection, which waits for a request.
    pub fn new() -> Self {
        Self(Arc::new(PhaseState {
            connected_at: Instant::now(),
            waiting_since: AtomicU64::new(0),
        }))
    }

    /// Returns whether no request has arrived on the connection yet.
    pub fn awaits_first_request(&self) -> bool {
        self.0.waiting_since.load(Ordering::Relaxed) == 0
    }

    pub fn request_started(&self, has_body: bool) {
        let phase = if has_body { RECEIVING } else { HANDLING };
        self.0.waiting_since.store(phase, Ordering::Relaxed);
    }

    /// Ends the wait for the body: it has arrived, or the handler does not need it.
    pub fn body_finished(&self) {
        let state = &self.0.waiting_since;
        let _ = state.compare_exchange(RECEIVING, HANDLING, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn response_ready(&self) {
        self.0.waiting_since.store(RESPONDING, Ordering::Relaxed);
    }

    /// Starts a response of unknown length, after which the connection is closed. The header timeout does not apply to
    /// it, and it is not evicted: the peer reads each part, or the write timeout closes the connection.
    pub fn stream_started(&self) {
        self.0.waiting_since.store(STREAMING, Ordering::Relaxed);
    }

    /// Restarts the header timeout, because a long response takes several writes. A write while the
    /// request is handled is `100 Continue` and changes nothing.
    fn write_completed(&self) {
        let phase = self.0.waiting_since.load(Ordering::Relaxed);
        if ![HANDLING, RECEIVING, STREAMING].contains(&phase) {
            let nanos = self.0.connected_at.elapsed().as_nanos();
            let nanos = u64::try_from(nanos).unwrap_or(RECEIVING);
            self.0.waiting_since.store(nanos, Ordering::Relaxed);
        }
    }

    fn waiting_since(&self) -> Option<Instant> {
        let nanos = self.0.waiting_since.load(Ordering::Relaxed);
        (nanos < STREAMING).then(|| self.0.connected_at + Duration::from_nanos(nanos))
    }

    /// Returns how long the connection has waited for its peer, or `None` while a request is handled or streamed.
    /// Zero while a body arrives or a response is written, because both started recently or progress.
    pub fn waiting_time(&self) -> Option<Duration> {
        match self.0.waiting_since.load(Ordering::Relaxed) {
            HANDLING | STREAMING => None,
            RESPONDING | RECEIVING => Some(Duration::ZERO),
            nanos => {
                let open = self.0.connected_at.elapsed();
                Some(open.saturating_sub(Duration::from_nanos(nanos)))
            }
        }
    }
}

pub struct TimeoutStream {
    stream: TcpStream,
    phase: ConnectionPhase,
    header_timer: Pin<Box<Sleep>>,
    write_timer: Option<Pin<Box<Sleep>>>,
    linger_timer: Option<Pin<Box<Sleep>>>,
}

impl TimeoutStream {
    pub fn new(stream: TcpStream, phase: ConnectionPhase) -> Self {
        Self {
            stream,
            phase,
            header_timer: Box::pin(sleep(HEADER_TIMEOUT)),
            write_timer: None,
            linger_timer: None,
        }
    }

    /// Returns the result of a write, or a timeout if it has been pending for too long.
    fn with_write_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.write_timer = None;
            self.phase.write_completed();
            return result;
        }
        let timer = self
            .write_timer
            .get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for TimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            return read;
        }
        while self.header_timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            // While a request is handled, the timeout has not started.
            let deadline = self.phase.waiting_since().unwrap_or(now) + HEADER_TIMEOUT;
            if deadline <= now {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.header_timer.set(sleep_until(deadline));
        }
        Poll::Pending
    }
}

impl AsyncWrite for TimeoutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.with_write_timeout(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.with_write_timeout(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger_timer.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.linger_timer = Some(Box::pin(sleep(LINGER_TIMEOUT)));
        }
        let mut discarded = [0; 4096];
        loop {
            if let Some(timer) = &mut self.linger_timer
                && timer.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(Ok(()));
            }
            let mut buf = ReadBuf::new(&mut discarded);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
