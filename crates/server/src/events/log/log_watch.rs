//! Wakes readers when the log of their tenant has grown.
//!
//! The sequencer sends one notification per tick that has assigned positions. A reader does not depend on it: it reads
//! again after a second at the latest.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use perennial_domain::{Id, TenantId};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::numbering_sql::CHANNEL;
use crate::db::{Databases, Notification, NotificationListener};

/// How long a reader waits at most before it reads again.
const MAX_WAIT_INTERVAL: Duration = Duration::from_secs(1);

/// The waiting readers of a cell's logs. Listens to the database from the first subscription.
pub struct LogWatch {
    db: Arc<Databases>,
    cell: String,
    readers: Arc<WaitingReaders>,
    listener: OnceLock<NotificationListener>,
}

#[derive(Default)]
struct WaitingReaders {
    by_tenant: Mutex<HashMap<Uuid, watch::Sender<()>>>,
    of_all: Mutex<Vec<Weak<PendingLogs>>>,
}

impl WaitingReaders {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, watch::Sender<()>>> {
        self.by_tenant
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_all(&self) -> MutexGuard<'_, Vec<Weak<PendingLogs>>> {
        self.of_all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, notification: Notification<'_>) {
        let grown = match notification {
            Notification::Payload(tenants) if !tenants.is_empty() => {
                let ids = tenants.split(' ').filter_map(|text| text.parse().ok());
                GrownLogs::Of(ids.map(TenantId::new).collect())
            }
            Notification::Payload(_) | Notification::MaybeMissed => GrownLogs::All,
        };
        self.lock_all().retain(|pending| {
            let pending = pending.upgrade();
            pending.inspect(|pending| pending.add(&grown)).is_some()
        });
        let mut readers = self.lock();
        match grown {
            GrownLogs::Of(tenants) => {
                for sender in tenants.iter().filter_map(|id| readers.get(&id.uuid())) {
                    sender.send_replace(());
                }
            }
            GrownLogs::All => {
                for sender in readers.values() {
                    sender.send_replace(());
                }
            }
        }
        readers.retain(|_, sender| sender.receiver_count() > 0);
    }
}

/// The tenants whose logs may have grown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrownLogs {
    Of(HashSet<TenantId>),
    /// Any tenant: a notification may have been missed.
    All,
}

/// What a reader of all logs has not read yet.
struct PendingLogs {
    grown: Mutex<GrownLogs>,
    changed: Notify,
}

impl PendingLogs {
    fn lock(&self) -> MutexGuard<'_, GrownLogs> {
        self.grown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, grown: &GrownLogs) {
        let mut pending = self.lock();
        match (&mut *pending, grown) {
            (GrownLogs::All, _) => {}
            (pending, GrownLogs::All) => *pending = GrownLogs::All,
            (GrownLogs::Of(pending), GrownLogs::Of(tenants)) => pending.extend(tenants),
        }
        self.changed.notify_one();
    }
}

impl LogWatch {
    pub fn new(db: Arc<Databases>, cell: &str) -> Self {
        Self {
            db,
            cell: cell.to_owned(),
            readers: Arc::default(),
            listener: OnceLock::new(),
        }
    }

    /// Subscribes to a tenant's log. Must be called before the log is read, so that no event is recorded between reading
    /// and waiting.
    pub fn subscribe(&self, tenant: TenantId) -> LogSubscription {
        self.listen();
        let mut readers = self.readers.lock();
        let sender = readers
            .entry(tenant.uuid())
            .or_insert_with(|| watch::Sender::new(()));
        LogSubscription(sender.subscribe())
    }

    /// Subscribes to the logs of all tenants of the cell.
    pub fn subscribe_all(&self) -> AllLogsSubscription {
        self.listen();
        let pending = Arc::new(PendingLogs {
            grown: Mutex::new(GrownLogs::All),
            changed: Notify::new(),
        });
        self.readers.lock_all().push(Arc::downgrade(&pending));
        AllLogsSubscription(pending)
    }

    fn listen(&self) {
        if let Some((_, database)) = { self.db.databases() }.find(|(name, _)| *name == self.cell) {
            self.listener.get_or_init(|| {
                let readers = self.readers.clone();
                database.listen(CHANNEL, move |notification| readers.wake(notification))
            });
        }
    }

    /// Waits until a tenant's log may have grown, for a second at most. Events that are recorded before the call do not
    /// end the wait; [`subscribe`](Self::subscribe) includes them.
    pub async fn changed(&self, tenant: TenantId) {
        self.subscribe(tenant).changed().await;
    }
}

/// A reader of one tenant's log.
pub struct LogSubscription(watch::Receiver<()>);

impl LogSubscription {
    /// Waits until the log may have grown since the last call or the subscription, for a second at most.
    pub async fn changed(&mut self) {
        // Fails only if the sender is dropped, and the map keeps it while there is a receiver.
        let _ = tokio::time::timeout(MAX_WAIT_INTERVAL, self.0.changed()).await;
    }
}

/// A reader of all tenants' logs. Starts with [`GrownLogs::All`].
pub struct AllLogsSubscription(Arc<PendingLogs>);

impl AllLogsSubscription {
    /// Waits until a log may have grown since the last [`take`](Self::take), for a second at most.
    pub async fn changed(&self) {
        let _ = tokio::time::timeout(MAX_WAIT_INTERVAL, self.0.changed.notified()).await;
    }

    /// Returns the tenants whose logs may have grown since the last call.
    pub fn take(&self) -> GrownLogs {
        std::mem::replace(&mut *self.0.lock(), GrownLogs::Of(HashSet::new()))
    }

    /// Adds a tenant, as if its log had grown.
    pub fn add(&self, tenant: TenantId) {
        self.0.add(&GrownLogs::Of(HashSet::from([tenant])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_of_all_logs_takes_each_tenant_once() {
        let readers = WaitingReaders::default();
        let pending = Arc::new(PendingLogs {
            grown: Mutex::new(GrownLogs::All),
            changed: Notify::new(),
        });
        readers.lock_all().push(Arc::downgrade(&pending));
        let subscription = AllLogsSubscription(pending);
        assert_eq!(subscription.take(), GrownLogs::All);
        let ids = [1, 2, 3].map(Uuid::from_u128);
        readers.wake(Notification::Payload(&format!("{} {}", ids[0], ids[1])));
        readers.wake(Notification::Payload(&ids[1].to_string()));
        subscription.add(TenantId::new(ids[2]));
        let all = GrownLogs::Of(ids.map(TenantId::new).into());
        assert_eq!(subscription.take(), all);
        assert_eq!(subscription.take(), GrownLogs::Of(HashSet::new()));
        for missed in [Notification::Payload(""), Notification::MaybeMissed] {
            readers.wake(missed);
            readers.wake(Notification::Payload(&ids[0].to_string()));
            assert_eq!(subscription.take(), GrownLogs::All);
        }
        drop(subscription);
        readers.wake(Notification::MaybeMissed);
        assert!(readers.lock_all().is_empty());
    }
}
