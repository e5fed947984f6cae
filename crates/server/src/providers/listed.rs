//! Which providers a tenant has, remembered for a second; and listing them, which `perennial provider` does.

use std::sync::Arc;

use perennial_domain::{EventKind, Id, TenantId};
use serde_json::json;

use super::{Provider, table};
use crate::{
    callers::Operator,
    db::{Connection, Db, Error, Lately},
};

/// The providers of each tenant.
pub(super) struct Listed(Lately<TenantId, Arc<[Provider]>>);

impl Listed {
    pub(super) fn new() -> Self {
        Self(Lately::new(10_000))
    }

    pub(super) async fn of(&self, db: &Db, tenant: TenantId) -> Result<Arc<[Provider]>, Error> {
        let listed = self.0.find(&tenant, async {
            let home = db.home()?.connection().await?;
            Ok(Some(table::list(&home, tenant).await?.into()))
        });
        Ok(listed.await?.unwrap_or_default())
    }
}

/// Lists a provider. The constraint `identity_providers_issuer` refuses one that is listed already,
/// `identity_providers_opaque` a second one whose tokens do not name it.
pub async fn add(
    home: &mut Connection,
    operator: Operator,
    tenant: TenantId,
    provider: &Provider,
) -> Result<(), Error> {
    let tx = home.begin();
    table::insert(&tx, tenant, provider, operator.now).await?;
    let data = json!({
        "issuer": provider.issuer,
        "audiences": provider.audiences,
        "verify": provider.verify.as_str(),
    });
    let kind = EventKind::ProviderAdded;
    operator
        .record(&tx, tenant, tenant.uuid(), kind, &data)
        .await?;
    tx.commit().await
}

/// Takes a provider from the list; whether it was there.
pub async fn remove(
    home: &mut Connection,
    operator: Operator,
    tenant: TenantId,
    issuer: &str,
) -> Result<bool, Error> {
    let tx = home.begin();
    if !table::remove(&tx, tenant, issuer).await? {
        return Ok(false);
    }
    let kind = EventKind::ProviderRemoved;
    operator
        .record(&tx, tenant, tenant.uuid(), kind, &json!({"issuer": issuer}))
        .await?;
    tx.commit().await?;
    Ok(true)
}
