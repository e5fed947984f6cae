//! A socket that does not wait for ever on its peer.
//!
//! hyper has a time limit for a request's header and none for a peer that does not read its answer:
//! that one would keep a connection and its buffers for as long as it likes. And a connection that is
//! closed while the peer is still sending (a body that is too large, a header that is no header) is
//! reset by the system, which can take the answer from under the peer's eyes; so a close says
//! goodbye first and then listens for a moment.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

/// How long a peer may leave its answer unread.
const STALLED: Duration = Duration::from_secs(10);
/// How long we listen after we have said goodbye.
const LINGER: Duration = Duration::from_secs(1);

/// A socket with limits on the peer's patience.
pub struct Socket {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
    lingering: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    /// Puts the limits around a stream.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
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
        Pin::new(&mut self.stream).poll_read(cx, buf)
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
