//! The settings of an endpoint that requests use.

use std::time::Instant;

use perennial_domain::{DeliveryOrder, EventTypes};

use crate::{
    db::Error,
    webhooks::{claim_sql::EndpointState, delivery::DeliveryWorker, signature::WebhookSecret},
};

/// The settings of an endpoint.
pub(super) struct EndpointSettings {
    pub(super) url: String,
    pub(super) order: DeliveryOrder,
    pub(super) types: EventTypes,
    pub(super) secrets: Vec<WebhookSecret>,
    /// In microseconds since the Unix epoch.
    pub(super) changed_at: i64,
    pub(super) read_at: Instant,
}

impl EndpointSettings {
    /// Decrypts the secrets that are valid now.
    pub(super) fn new(worker: &DeliveryWorker, state: &EndpointState) -> Result<Self, Error> {
        let EndpointState {
            endpoint, secrets, ..
        } = state;
        let app = &worker.app;
        Ok(Self {
            url: endpoint.details.url.as_str().to_owned(),
            order: endpoint.details.order,
            types: endpoint.details.event_types.clone(),
            secrets: secrets.open(&app.keys, endpoint.id, app.clock.now())?,
            changed_at: endpoint.updated_at.as_microsecond(),
            read_at: Instant::now(),
        })
    }
}
