//! Read-through cache of the identity providers of each tenant.

use std::sync::Arc;

use perennial_domain::TenantId;

use super::{IdentityProvider, table};
use crate::db::{Databases, Error, ReadThroughCache};

const MAX_TENANTS: usize = 10_000;

pub(super) struct ProviderCache(ReadThroughCache<TenantId, Arc<[IdentityProvider]>>);

impl ProviderCache {
    pub(super) fn new() -> Self {
        Self(ReadThroughCache::new(MAX_TENANTS))
    }

    /// Returns the tenant's identity providers, which a cache miss reads from the home cell.
    pub(super) async fn list(
        &self,
        db: &Databases,
        tenant: TenantId,
    ) -> Result<Arc<[IdentityProvider]>, Error> {
        let providers = self.0.get_or_load(&tenant, async {
            let home = db.home()?.connection().await?;
            Ok(Some(table::list(&home, tenant).await?.into()))
        });
        Ok(providers.await?.unwrap_or_default())
    }
}
