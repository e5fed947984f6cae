//! The feed: what other instances tell through the database, and the proof that it still arrives.
//!
//! PostgreSQL delivers a notification after the commit that it was sent by, in the order of commits, to
//! every session that listens. A session that has been cut off hears nothing, though, and nothing is also
//! what it hears when there is nothing to say. So we send ourselves a **heartbeat**, every moment, through
//! the pool that writes use. One that is heard proves that everything committed before it was *sent* has
//! been heard before it; and whoever remembers things may rely on that memory for as long as the newest
//! such proof is young ([`Feed::is_proven`]). With a feed that is cut, frozen, or listening to yesterday's
//! primary, no proof comes, and the database is asked instead.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool_postgres::{Pool, Timeouts};
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::AsyncMessage;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Address, Error, Sql};
use crate::randomness::{Randomness, varied};

/// How old the newest proof may be, counted from when its heartbeat was sent.
const PROVEN: Duration = Duration::from_millis(500);
/// How often a heartbeat is sent.
const RHYTHM: Duration = Duration::from_millis(120);
/// How long none may be heard before the session is given up.
const SILENCE: Duration = Duration::from_secs(2);
/// How long to wait between attempts to connect.
const PAUSE: Duration = Duration::from_millis(200);
/// How long connecting, listening or sending may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sent without waiting for the disk: a heartbeat need not outlive a crash.
static BEAT: Sql =
    Sql::new("SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)");

/// What comes by the feed.
#[derive(Debug, Clone, Copy)]
pub enum Heard<'a> {
    /// Something was said.
    Said(&'a str),
    /// Something may have been said and not heard: whatever is remembered may be wrong.
    Nothing,
}

/// Listens to a channel for as long as it lives.
pub struct Feed {
    state: Arc<State>,
    _stops_on_drop: DropGuard,
}

struct State {
    begun: Instant,
    listens: AtomicBool,
    /// When the newest heartbeat that was heard had been sent, in microseconds after `begun`; 0 for none.
    proven: AtomicU64,
}

impl State {
    /// An instant, in microseconds after `begun`.
    fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.begun);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// How long before `now` the newest heartbeat that was heard had been sent; for ever, if there was none.
    fn age(&self, now: Instant) -> Duration {
        match self.proven.load(Ordering::Acquire) {
            0 => Duration::MAX,
            proven => Duration::from_micros(self.micros(now).saturating_sub(proven)),
        }
    }
}

impl Feed {
    /// Begins to listen to `channel`. What is heard is handed to `on`, in order; it must not take long.
    pub(super) fn start(
        address: Address,
        pool: Pool,
        channel: &'static str,
        on: impl Fn(Heard<'_>) + Send + Sync + 'static,
    ) -> Self {
        let stop = CancellationToken::new();
        let state = Arc::new(State {
            begun: Instant::now(),
            listens: AtomicBool::new(false),
            proven: AtomicU64::new(0),
        });
        let listener = Listener {
            address,
            pool,
            channel,
            own: format!(
                "perennial_beat_{:032x}",
                u128::from_le_bytes(Randomness.bytes())
            ),
            state: state.clone(),
            on: Arc::new(on),
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(listener.run()));
        Self {
            state,
            _stops_on_drop: stop.drop_guard(),
        }
    }

    /// Whether everything that was committed until a moment ago has been heard. Asks the clock itself: whoever asks may
    /// have waited since it last did.
    pub fn is_proven(&self) -> bool {
        self.listens() && self.state.age(Instant::now()) <= PROVEN
    }

    /// Whether what will be committed from now on will be heard, or else [`Heard::Nothing`].
    pub fn listens(&self) -> bool {
        self.state.listens.load(Ordering::Acquire)
    }
}

struct Listener<F> {
    address: Address,
    pool: Pool,
    channel: &'static str,
    /// The channel of our own heartbeats.
    own: String,
    state: Arc<State>,
    on: Arc<F>,
}

impl<F: Fn(Heard<'_>) + Send + Sync + 'static> Listener<F> {
    async fn run(self) {
        loop {
            let listened = self.listen().await;
            // Not listening is news once, not at every attempt.
            match listened {
                Ended::AfterListening(why) => tracing::warn!(
                    %why, "lost the feed of other instances; the database is asked about each session until it is back"
                ),
                Ended::AtOnce(why) => tracing::debug!(%why, "cannot listen to other instances"),
            }
            tokio::time::sleep(varied(PAUSE)).await;
        }
    }

    /// Listens until the session ends or falls silent.
    async fn listen(&self) -> Ended {
        let (client, mut reader) = match self.open().await {
            Ok(opened) => opened,
            Err(error) => return Ended::AtOnce(error.to_string()),
        };
        // Whatever becomes of this task, nothing is heard without it.
        let _ending = Ending {
            listener: self,
            reader: reader.abort_handle(),
        };
        let listen = format!("LISTEN {}; LISTEN {}", self.channel, self.own);
        match timeout(PATIENCE, client.batch_execute(&listen)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Ended::AtOnce(error.to_string()),
            Err(_) => return Ended::AtOnce("no answer in time".to_owned()),
        }
        self.state.listens.store(true, Ordering::Release);
        // The oldest heartbeat that was sent and has not been heard.
        let mut unheard: Option<u64> = None;
        loop {
            tokio::select! {
                _ = &mut reader => return Ended::AfterListening("the session ended".to_owned()),
                () = tokio::time::sleep(RHYTHM) => {}
            }
            let heard = self.state.proven.load(Ordering::Acquire);
            unheard = unheard.filter(|sent| *sent > heard);
            let silence = unheard.map_or(0, |sent| {
                self.state.micros(Instant::now()).saturating_sub(sent)
            });
            if Duration::from_micros(silence) > SILENCE {
                return Ended::AfterListening("nothing is heard".to_owned());
            }
            match self.beat().await {
                Ok(sent) => unheard = unheard.or(Some(sent)),
                Err(error) => tracing::debug!(%error, "cannot send a heartbeat"),
            }
        }
    }

    /// Opens a session, and a task that hands on what it hears.
    async fn open(&self) -> Result<(tokio_postgres::Client, JoinHandle<()>), Error> {
        let opened = timeout(PATIENCE, self.address.open()).await;
        let in_time = opened.map_err(|_| Error::Unavailable("no answer in time".to_owned()));
        let (client, mut connection) = in_time??;
        let (state, on, own) = (self.state.clone(), self.on.clone(), self.own.clone());
        let reader = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                let AsyncMessage::Notification(heard) = message else {
                    continue;
                };
                if heard.channel() == own {
                    let sent = heard.payload().parse().unwrap_or(0);
                    state.proven.fetch_max(sent, Ordering::AcqRel);
                } else {
                    on(Heard::Said(heard.payload()));
                }
            }
        });
        Ok((client, reader))
    }

    /// Sends a heartbeat the way that writes go, and so to the server that they go to; answers when that was.
    async fn beat(&self) -> Result<u64, Error> {
        let beat = async {
            let patience = Timeouts::wait_millis(400);
            let connection = self.pool.timeout_get(&patience).await?;
            let statement = connection.prepare_cached(BEAT.text()).await?;
            // Not before: waiting for a connection says nothing of the feed.
            let now = self.state.micros(Instant::now());
            let instant = now.to_string();
            connection
                .execute(&statement, &[&self.own, &instant])
                .await
                .map_err(Error::from)?;
            Ok(now)
        };
        let beaten = timeout(SILENCE, beat).await;
        beaten.unwrap_or_else(|_| Err(Error::Unavailable("no answer in time".to_owned())))
    }
}

/// How listening ended.
enum Ended {
    AfterListening(String),
    AtOnce(String),
}

/// The end of a session, by whatever it ends.
struct Ending<'a, F: Fn(Heard<'_>)> {
    listener: &'a Listener<F>,
    reader: tokio::task::AbortHandle,
}

impl<F: Fn(Heard<'_>)> Drop for Ending<'_, F> {
    fn drop(&mut self) {
        self.reader.abort();
        let state = &self.listener.state;
        // In this order: who sees that we listen, and remembers what it read before, is told to forget it.
        state.listens.store(false, Ordering::Release);
        state.proven.store(0, Ordering::Release);
        (self.listener.on)(Heard::Nothing);
    }
}
