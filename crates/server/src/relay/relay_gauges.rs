//! The gauges of what a relay has not published.

use metrics::Gauge;

pub(super) struct RelayGauges {
    pending: Gauge,
    diverged: Gauge,
}

impl RelayGauges {
    pub(super) fn new(cell: &str) -> Self {
        let label = [("cell", cell.to_owned())];
        Self {
            pending: metrics::gauge!("perennial_relay_pending_events", &label),
            diverged: metrics::gauge!("perennial_relay_diverged_tenants", &label),
        }
    }

    /// Sets the number of pending positions, and of tenants whose stream contains another history. A gauge need not
    /// be exact above `u32::MAX`.
    pub(super) fn set(&self, pending: i64, diverged: usize) {
        self.pending.set(u32::try_from(pending).unwrap_or(u32::MAX));
        self.diverged
            .set(u32::try_from(diverged).unwrap_or(u32::MAX));
    }
}
