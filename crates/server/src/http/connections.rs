//! The open connections of a listener: limits per IP address, and eviction when all slots are used.
//!
//! A new connection must not have to wait for peers that send or read slowly. When all slots are used,
//! connections that wait for their peer are closed: first those of the address with the most
//! connections, and of these the ones that have waited longest. A connection whose request is being
//! handled is never evicted.

use std::{
    cmp::Reverse,
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arrayvec::ArrayVec;
use ipnet::IpNet;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::AbortHandle,
};

use super::{
    client_ip::{ClientIp, WIDER_NETWORKS},
    timeout_stream::ConnectionPhase,
};

/// How long to wait for a slot before evicting again.
const EVICTION_INTERVAL: Duration = Duration::from_millis(50);

/// The open connections of one listener.
#[derive(Clone)]
pub(super) struct Connections {
    registry: Arc<Mutex<ConnectionRegistry>>,
    slots: Arc<Semaphore>,
    /// Evicted at once, so that the search for them is rare.
    eviction_batch: usize,
    gauge: metrics::Gauge,
}

#[derive(Default)]
struct ConnectionRegistry {
    open: HashMap<u64, OpenConnection>,
    by_network: HashMap<IpNet, usize>,
    last_id: u64,
}

struct OpenConnection {
    /// From the narrowest to the widest.
    networks: Networks,
    /// Whether the number of its address's connections is limited.
    limited: bool,
    phase: ConnectionPhase,
    /// `None` until the task has been spawned.
    task: Option<AbortHandle>,
}

type Networks = ArrayVec<IpNet, { WIDER_NETWORKS.len() + 1 }>;

/// Counts a connection until dropped.
pub(super) struct ConnectionSlot {
    id: u64,
    connections: Connections,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connections {
    /// Creates the registry of a listener. `listener` is its label in metrics.
    pub(super) fn new(listener: &'static str, max_connections: usize) -> Self {
        Self {
            registry: Arc::default(),
            slots: Arc::new(Semaphore::new(max_connections)),
            eviction_batch: max_connections.div_ceil(100),
            gauge: metrics::gauge!("perennial_connections_open", "listener" => listener),
        }
    }

    /// Returns a permit for one more connection. Evicts connections if there is none.
    pub(super) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = self.slots.clone().try_acquire_owned() {
            return Some(permit);
        }
        loop {
            self.evict();
            let permit = self.slots.clone().acquire_owned();
            // Never an error: the semaphore is not closed.
            if let Ok(permit) = tokio::time::timeout(EVICTION_INTERVAL, permit).await {
                return permit.ok();
            }
        }
    }

    /// Counts a connection. Returns `None` if its address or network has reached its limit.
    pub(super) fn acquire(
        &self,
        address: IpAddr,
        limit_per_address: Option<usize>,
        phase: ConnectionPhase,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Option<ConnectionSlot> {
        let networks = networks(address);
        let factors = [1]
            .into_iter()
            .chain(WIDER_NETWORKS.map(|wider| wider.factor));
        let mut registry = self.registry();
        for (network, factor) in networks.iter().zip(factors) {
            let factor = usize::try_from(factor).unwrap_or(usize::MAX);
            let count = registry.by_network.get(network).copied().unwrap_or(0);
            if limit_per_address.is_some_and(|limit| count >= limit.saturating_mul(factor)) {
                return None;
            }
        }
        for network in &networks {
            *registry.by_network.entry(*network).or_default() += 1;
        }
        registry.last_id += 1;
        let id = registry.last_id;
        let connection = OpenConnection {
            networks,
            limited: limit_per_address.is_some(),
            phase,
            task: None,
        };
        registry.open.insert(id, connection);
        self.gauge.increment(1);
        Some(ConnectionSlot {
            id,
            connections: self.clone(),
            _permit: permit,
        })
    }

    /// Sets the task that serves a connection, unless it has already finished.
    pub(super) fn set_task(&self, id: u64, task: AbortHandle) {
        if let Some(connection) = self.registry().open.get_mut(&id) {
            connection.task = Some(task);
        }
    }

    /// Closes connections that wait for their peer. Trusted proxies, whose connections serve many
    /// clients, come last.
    fn evict(&self) {
        let registry = self.registry();
        let mut waiting: Vec<_> = registry
            .open
            .values()
            .filter_map(|connection| {
                let waited = connection.phase.waiting_time()?;
                let network = connection.networks.last().filter(|_| connection.limited);
                let count = network.and_then(|network| registry.by_network.get(network));
                Some((
                    count.copied().unwrap_or(0),
                    waited,
                    connection.task.as_ref()?,
                ))
            })
            .collect();
        waiting.sort_unstable_by_key(|(count, waited, _)| Reverse((*count, *waited)));
        for (_, _, task) in waiting.iter().take(self.eviction_batch) {
            // Drops the connection, and with it the slot, when the task is scheduled next.
            task.abort();
            metrics::counter!("perennial_shed_total", "by" => "connections").increment(1);
        }
    }

    fn registry(&self) -> MutexGuard<'_, ConnectionRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.gauge.decrement(1);
        let mut registry = self.connections.registry();
        let Some(connection) = registry.open.remove(&self.id) else {
            return;
        };
        for network in &connection.networks {
            if let Some(count) = registry.by_network.get_mut(network) {
                *count -= 1;
                if *count == 0 {
                    registry.by_network.remove(network);
                }
            }
        }
    }
}

/// Returns the networks of an address that have a limit.
fn networks(address: IpAddr) -> Networks {
    let mut networks = Networks::new();
    let narrow = ClientIp(address).network();
    let prefix_len = if narrow.is_ipv6() { 64 } else { 32 };
    networks.extend(IpNet::new(narrow, prefix_len).ok());
    if narrow.is_ipv6() {
        let wider = WIDER_NETWORKS.iter();
        let wider = wider.filter_map(|wider| IpNet::new(narrow, wider.prefix_len).ok());
        networks.extend(wider.map(|network| network.trunc()));
    }
    networks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_connections_are_limited_per_network() {
        let connections = Connections::new("test", 1_000);
        let open = |network: u16| {
            let address = format!("2001:db8:1:{network:x}::1").parse().unwrap();
            connections.acquire(address, Some(2), ConnectionPhase::new(), None)
        };
        let same_64: Vec<_> = (0..5).filter_map(|_| open(0)).collect();
        assert_eq!(same_64.len(), 2);
        let same_56: Vec<_> = (1..100).filter_map(open).collect();
        assert_eq!(same_64.len() + same_56.len(), 2 * 4);
        let same_48: Vec<_> = (1..100).filter_map(|number| open(number * 256)).collect();
        assert_eq!(same_64.len() + same_56.len() + same_48.len(), 2 * 16);
        drop(same_48);
        assert!(open(0x1000).is_some() && open(1).is_none());
        drop((same_64, same_56));
        assert!(connections.registry().by_network.is_empty());
        assert!(connections.registry().open.is_empty());
    }
}
