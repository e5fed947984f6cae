//! The names of the clients and staff members that made changes.

use std::collections::{BTreeMap, BTreeSet};

use perennial_domain::{ClientId, StaffId, TenantId};

use crate::{
    auth::staff,
    clients,
    db::{Databases, Error},
    events::RecordedEvent,
};

/// The names of clients and the email addresses of staff members, by id.
#[derive(Debug, Default)]
pub struct ActorNames {
    pub clients: BTreeMap<ClientId, String>,
    pub staff: BTreeMap<StaffId, String>,
}

impl ActorNames {
    /// Loads the names of the clients and staff members that made these changes.
    pub async fn load(
        db: &Databases,
        tenant: TenantId,
        events: &[RecordedEvent],
    ) -> Result<Self, Error> {
        let clients: BTreeSet<ClientId> = { events.iter() }
            .filter_map(|event| event.actor.client)
            .collect();
        let members: BTreeSet<StaffId> = { events.iter() }
            .filter_map(|event| event.actor.staff)
            .collect();
        let mut names = Self::default();
        if clients.is_empty() && members.is_empty() {
            return Ok(names);
        }
        let home = db.home()?.connection().await?;
        if !clients.is_empty() {
            let clients = Vec::from_iter(clients);
            let found = clients::table::names(&home, tenant, &clients).await?;
            names.clients = found.into_iter().collect();
        }
        if !members.is_empty() {
            let members = Vec::from_iter(members);
            let found = staff::table::emails(&home, tenant, &members).await?;
            names.staff = found.into_iter().collect();
        }
        Ok(names)
    }
}
