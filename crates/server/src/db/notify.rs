//! LISTEN/NOTIFY, with a heartbeat that shows whether notifications still arrive.
//!
//! PostgreSQL delivers a notification after its transaction commits, in commit order, to every
//! session that listens. A listener cannot tell a lost session from one without notifications. So
//! each listener sends itself a **heartbeat** every 120 ms, through the connection pool that writes
//! use. When the heartbeat arrives, everything that was committed before it was sent has arrived too.
//!
//! A cache that is invalidated by notifications may be used while the latest heartbeat is recent
//! ([`NotificationListener::is_caught_up`]). If the session is lost, frozen or connected to a former
//! primary, no heartbeat arrives, and callers must query the database instead.
//!
//! All listeners of a database share one session and its heartbeats.

use std::{
    future::poll_fn,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool_postgres::{Pool, Timeouts};
use tokio::{
    sync::Notify,
    task::{AbortHandle, JoinHandle},
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{ConnectOptions, Error, Sql};
use crate::randomness::{Randomness, jitter};

/// The maximum age of the latest received heartbeat, counted from when it was sent.
pub(super) const MAX_HEARTBEAT_AGE: Duration = Duration::from_millis(500);
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(120);
/// How long a heartbeat may be outstanding before the session is closed.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(2);
const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);
/// Applies to connecting and to LISTEN.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Does not wait for the disk: a heartbeat need not survive a crash.
static SEND_HEARTBEAT: Sql =
    Sql::new("SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)");

#[derive(Debug, Clone, Copy)]
pub enum Notification<'a> {
    Payload(&'a str),
    /// The session ended, and notifications may have been lost: caches must be cleared.
    MaybeMissed,
}

/// Whether the notifications of one channel arrive.
#[derive(Debug, Clone)]
pub struct NotificationListener {
    heartbeats: Arc<Heartbeats>,
    is_listening: Arc<AtomicBool>,
}

impl NotificationListener {
    /// Returns whether all notifications committed up to [`MAX_HEARTBEAT_AGE`] ago have been received.
    /// Reads the clock here, because the caller may have waited since it last read the clock.
    pub fn is_caught_up(&self) -> bool {
        self.is_listening() && self.heartbeats.age(Instant::now()) <= MAX_HEARTBEAT_AGE
    }

    /// Returns whether the session is listening to the channel. Each later notification is then
    /// delivered, or else [`Notification::MaybeMissed`].
    pub fn is_listening(&self) -> bool {
        self.is_listening.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
struct Heartbeats {
    started_at: Instant,
    /// When the latest received heartbeat was sent, in microseconds after `started_at`; 0 if none
    /// has been received.
    latest: AtomicU64,
}

impl Heartbeats {
    fn micros_since_start(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.started_at);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// Returns the age of the latest received heartbeat, or `Duration::MAX` if there is none.
    fn age(&self, now: Instant) -> Duration {
        match self.latest.load(Ordering::Acquire) {
            0 => Duration::MAX,
            sent => Duration::from_micros(self.micros_since_start(now).saturating_sub(sent)),
        }
    }
}

type OnNotification = Box<dyn Fn(Notification<'_>) + Send + Sync>;

struct ChannelListener {
    channel: &'static str,
    is_listening: Arc<AtomicBool>,
    on_notification: OnNotification,
}

#[derive(Default)]
struct Listeners {
    list: RwLock<Vec<ChannelListener>>,
    added: Notify,
}

impl Listeners {
    fn add(&self, listener: ChannelListener) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        list.push(listener);
        self.added.notify_one();
    }

    fn for_each(&self, run: impl FnMut(&ChannelListener)) {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.iter().for_each(run);
    }

    fn dispatch(&self, channel: &str, payload: &str) {
        self.for_each(|listener| {
            if listener.channel == channel {
                (listener.on_notification)(Notification::Payload(payload));
            }
        });
    }
}

/// The session that listens for all [`NotificationListener`]s of a database, until it is dropped.
pub(super) struct NotificationSession {
    heartbeats: Arc<Heartbeats>,
    listeners: Arc<Listeners>,
    _stops_on_drop: DropGuard,
}

impl NotificationSession {
    pub(super) fn start(options: ConnectOptions, pool: Pool) -> Self {
        let stop = CancellationToken::new();
        let heartbeats = Arc::new(Heartbeats {
            started_at: Instant::now(),
            latest: AtomicU64::new(0),
        });
        let listeners = Arc::<Listeners>::default();
        let task = SessionTask {
            options,
            pool,
            heartbeat_channel: format!(
                "perennial_beat_{:032x}",
                u128::from_le_bytes(Randomness.bytes())
            ),
            heartbeats: heartbeats.clone(),
            listeners: listeners.clone(),
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(task.run()));
        Self {
            heartbeats,
            listeners,
            _stops_on_drop: stop.drop_guard(),
        }
    }

    /// Listens to `channel` too. `on_notification` is called in commit order and must not block.
    pub(super) fn listen(
        &self,
        channel: &'static str,
        on_notification: impl Fn(Notification<'_>) + Send + Sync + 'static,
    ) -> NotificationListener {
        let is_listening = Arc::new(AtomicBool::new(false));
        self.listeners.add(ChannelListener {
            channel,
            is_listening: is_listening.clone(),
            on_notification: Box::new(on_notification),
        });
        NotificationListener {
            heartbeats: self.heartbeats.clone(),
            is_listening,
        }
    }
}

struct SessionTask {
    options: ConnectOptions,
    pool: Pool,
    heartbeat_channel: String,
    heartbeats: Arc<Heartbeats>,
    listeners: Arc<Listeners>,
}

impl SessionTask {
    async fn run(self) {
        loop {
            // Warn when a session is lost, not at each failed attempt to reconnect.
            match self.listen().await {
                SessionEnd::Lost(reason) => tracing::warn!(
                    %reason,
                    "lost the notification session; caches are bypassed until it is back"
                ),
                SessionEnd::NotStarted(reason) => {
                    tracing::debug!(%reason, "cannot listen to notifications");
                }
            }
            tokio::time::sleep(jitter(RECONNECT_INTERVAL)).await;
        }
    }

    /// Listens until the session ends or heartbeats stop arriving.
    async fn listen(&self) -> SessionEnd {
        let (client, mut reader) = match self.connect().await {
            Ok(connected) => connected,
            Err(error) => return SessionEnd::NotStarted(error.to_string()),
        };
        // Also runs when this future is dropped.
        let _reset = ResetOnDrop {
            task: self,
            reader: reader.abort_handle(),
        };
        let listen = format!("LISTEN {};", self.heartbeat_channel);
        if let Err(error) = self.listen_to_new_channels(&client, listen).await {
            return SessionEnd::NotStarted(error.to_string());
        }
        // When the oldest heartbeat that has not arrived yet was sent, in the unit of `latest`.
        let mut outstanding: Option<u64> = None;
        loop {
            tokio::select! {
                _ = &mut reader => return SessionEnd::Lost("the session ended".to_owned()),
                () = self.listeners.added.notified() => {
                    let listening = self.listen_to_new_channels(&client, String::new());
                    if let Err(error) = listening.await {
                        return SessionEnd::Lost(error.to_string());
                    }
                }
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => {}
            }
            let received = self.heartbeats.latest.load(Ordering::Acquire);
            outstanding = outstanding.filter(|sent| *sent > received);
            let waited = outstanding.map_or(0, |sent| {
                { self.heartbeats.micros_since_start(Instant::now()) }.saturating_sub(sent)
            });
            if Duration::from_micros(waited) > HEARTBEAT_TIMEOUT {
                return SessionEnd::Lost("heartbeats do not arrive".to_owned());
            }
            match self.send_heartbeat().await {
                Ok(sent) => outstanding = outstanding.or(Some(sent)),
                Err(error) => tracing::debug!(%error, "cannot send a heartbeat"),
            }
        }
    }

    /// Runs `statements` and listens to the channels that this session does not listen to yet.
    async fn listen_to_new_channels(
        &self,
        client: &Client,
        mut statements: String,
    ) -> Result<(), Error> {
        let mut new = Vec::new();
        self.listeners.for_each(|listener| {
            if !listener.is_listening.load(Ordering::Acquire) {
                statements += &format!("LISTEN {};", listener.channel);
                new.push(listener.is_listening.clone());
            }
        });
        let listening = timeout(CONNECT_TIMEOUT, client.batch_execute(&statements)).await;
        listening.map_err(|_| Error::timed_out())??;
        for is_listening in new {
            is_listening.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Opens a session and spawns a task that dispatches its notifications.
    async fn connect(&self) -> Result<(Client, JoinHandle<()>), Error> {
        let connected = timeout(CONNECT_TIMEOUT, self.options.connect()).await;
        let (client, mut connection) = connected.map_err(|_| Error::timed_out())??;
        let (heartbeats, listeners) = (self.heartbeats.clone(), self.listeners.clone());
        let heartbeat_channel = self.heartbeat_channel.clone();
        let reader = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                let AsyncMessage::Notification(message) = message else {
                    continue;
                };
                if message.channel() == heartbeat_channel {
                    let sent = message.payload().parse().unwrap_or(0);
                    heartbeats.latest.fetch_max(sent, Ordering::AcqRel);
                } else {
                    listeners.dispatch(message.channel(), message.payload());
                }
            }
        });
        Ok((client, reader))
    }

    /// Sends a heartbeat through the pool, and so to the same server as writes. Returns when it was
    /// sent.
    async fn send_heartbeat(&self) -> Result<u64, Error> {
        let send = async {
            let pool_timeout = Timeouts::wait_millis(400);
            let connection = self.pool.timeout_get(&pool_timeout).await?;
            let statement = connection.prepare_cached(SEND_HEARTBEAT.text()).await?;
            // Read the clock after waiting for a connection: a busy pool does not delay notifications, so
            // the wait must not count toward the heartbeat's age.
            let now = self.heartbeats.micros_since_start(Instant::now());
            let payload = now.to_string();
            connection
                .execute(&statement, &[&self.heartbeat_channel, &payload])
                .await
                .map_err(Error::from)?;
            Ok(now)
        };
        let outcome = timeout(HEARTBEAT_TIMEOUT, send).await;
        outcome.unwrap_or_else(|_| Err(Error::timed_out()))
    }
}

enum SessionEnd {
    /// The session was listening.
    Lost(String),
    NotStarted(String),
}

/// Marks all listeners as disconnected when their session ends.
struct ResetOnDrop<'a> {
    task: &'a SessionTask,
    reader: AbortHandle,
}

impl Drop for ResetOnDrop<'_> {
    fn drop(&mut self) {
        self.reader.abort();
        let SessionTask {
            heartbeats,
            listeners,
            ..
        } = self.task;
        // `is_listening` is reset before `MaybeMissed` is sent: if a caller still saw it set and then
        // caches a stale value, `MaybeMissed` clears that value.
        listeners.for_each(|listener| {
            listener.is_listening.store(false, Ordering::Release);
        });
        heartbeats.latest.store(0, Ordering::Release);
        listeners.for_each(|listener| {
            (listener.on_notification)(Notification::MaybeMissed);
        });
    }
}
