//! Wakes readers when the log of their tenant has grown.
//!
//! The sequencer sends one notification per tick that has assigned positions. A reader does not depend on it: it reads
//! again after a second at the latest.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use perennial_domain::{Id, TenantId};
use tokio::sync::watch;
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
    /// Of all tenants.
    all: watch::Sender<()>,
}

impl WaitingReaders {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, watch::Sender<()>>> {
        self.by_tenant
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, notification: Notification<'_>) {
        self.all.send_replace(());
        let mut readers = self.lock();
        match notification {
            Notification::Payload(tenants) if !tenants.is_empty() => {
                for tenant in tenants.split(' ').filter_map(|text| text.parse().ok()) {
                    if let Some(sender) = readers.get(&tenant) {
                        sender.send_replace(());
                    }
                }
            }
            Notification::Payload(_) | Notification::MaybeMissed => {
                for sender in readers.values() {
                    sender.send_replace(());
                }
            }
        }
        readers.retain(|_, sender| sender.receiver_count() > 0);
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
    pub fn subscribe_all(&self) -> LogSubscription {
        self.listen();
        LogSubscription(self.readers.all.subscribe())
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
