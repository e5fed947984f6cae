//! Creates, updates and deletes tenants.
//!
//! A tenant's data is stored in the database of its cell. The tenants themselves are stored in the
//! database of the home cell, to which `home` is a connection.

pub mod contents_sql;
pub mod table;

use jiff::Timestamp;
use perennial_domain::{Currency, EventKind, Id, SingleLine, TenantId};
use serde_json::{Map, Value, json};

use super::{SystemContext, Tenant};
use crate::db::{Error, PooledConnection, Transaction};

/// Creates a tenant whose data is stored in the database of `cell`.
pub async fn create(
    home: &mut PooledConnection,
    context: SystemContext,
    name: &SingleLine<200>,
    cell: &str,
    default_currency: Currency,
) -> Result<TenantId, Error> {
    let tenant = Tenant {
        cell: cell.to_owned(),
        ..Tenant::new(context.ids.generate(context.now), default_currency)
    };
    let tx = home.begin();
    insert(&tx, context, &tenant, name.as_str()).await?;
    tx.commit().await?;
    Ok(tenant.id)
}

/// Creates the tenant "default" if there is no tenant. Safe to call from several instances concurrently.
pub async fn ensure_default(
    home: &mut PooledConnection,
    context: SystemContext,
    default_currency: Currency,
) -> Result<(), Error> {
    let tx = home.begin();
    if table::lock_and_check_empty(&tx).await? {
        let tenant = Tenant::new(context.ids.generate(context.now), default_currency);
        insert(&tx, context, &tenant, "default").await?;
        tx.commit().await?;
    }
    Ok(())
}

async fn insert(
    tx: &Transaction<'_>,
    context: SystemContext,
    tenant: &Tenant,
    name: &str,
) -> Result<(), Error> {
    table::insert(tx, tenant, name, context.now).await?;
    let data = json!({"name": name, "cell": tenant.cell, "default_currency": tenant.default_currency.code()});
    context
        .record(
            tx,
            tenant.id,
            tenant.id.uuid(),
            EventKind::TenantCreated,
            &data,
        )
        .await
}

/// Sets lifecycle start times after `now` to `now`. After a reset of the sandbox clock, a lifecycle
/// that started at a simulated time would otherwise be inactive until then.
pub async fn cap_lifecycle_since(home: &mut PooledConnection, now: Timestamp) -> Result<(), Error> {
    let tx = home.begin();
    table::cap_lifecycle_since(&tx, now).await?;
    table::notify_clients_changed(&tx, None).await?;
    tx.commit().await
}

/// Why a tenant cannot be deleted.
#[derive(Debug)]
pub enum TenantInUse {
    /// Every installation has at least one tenant.
    OnlyOne,
    /// The number of enabled clients.
    Clients(i64),
    /// The number of identity providers.
    Providers(i64),
}

/// Deletes a tenant that has no enabled clients and no identity providers, with its disabled clients. Its
/// events stay. The caller has checked that it has no users, plans and subscriptions.
pub async fn delete(
    home: &mut PooledConnection,
    context: SystemContext,
    tenant: TenantId,
    name: &str,
) -> Result<Result<(), TenantInUse>, Error> {
    let tx = home.begin();
    let references = table::lock_for_delete(&tx, tenant).await?;
    if references.tenants < 2 {
        return Ok(Err(TenantInUse::OnlyOne));
    }
    if references.enabled_clients > 0 {
        return Ok(Err(TenantInUse::Clients(references.enabled_clients)));
    }
    if references.providers > 0 {
        return Ok(Err(TenantInUse::Providers(references.providers)));
    }
    table::delete(&tx, tenant).await?;
    table::notify_clients_changed(&tx, Some(tenant)).await?;
    let kind = EventKind::TenantDeleted;
    let data = json!({"name": name});
    context
        .record(&tx, tenant, tenant.uuid(), kind, &data)
        .await?;
    tx.commit().await?;
    Ok(Ok(()))
}

/// Settings to change; `None` keeps the current value.
#[derive(Debug, Default)]
pub struct TenantSettings {
    pub name: Option<SingleLine<200>>,
    /// Currency of amounts sent without one.
    pub default_currency: Option<Currency>,
    /// Maximum age, in seconds, of the session with which a user deletes their account; 0 for no limit.
    pub recent_sign_in: Option<i32>,
    /// In seconds; at least 1,800 and at most a year.
    pub session_idle_timeout: Option<i32>,
    /// In seconds; at least 1,800 and at most a year.
    pub session_absolute_timeout: Option<i32>,
    /// Whether users can cancel their own subscriptions, and undo that.
    pub self_service: Option<bool>,
    pub lifecycle: LifecycleSettings,
}

/// Settings of the subscription lifecycle.
#[derive(Debug, Default)]
pub struct LifecycleSettings {
    /// Whether the service charges the periods of subscriptions (`managed`). Otherwise clients report
    /// changes, and a subscription only expires at its `ends_at` (`recorded`).
    pub managed: Option<bool>,
    /// Days from an unpaid period's due date until the subscription is unpaid.
    pub unpaid_after: Option<i32>,
    /// Days from an unpaid period's due date until the subscription expires.
    pub expired_after: Option<i32>,
    /// When a switch to managed takes effect. A `renews_at` that passed before then is due then.
    pub since: Timestamp,
}

impl LifecycleSettings {
    /// Returns whether no setting changes.
    pub fn is_empty(&self) -> bool {
        self.managed.is_none() && self.unpaid_after.is_none() && self.expired_after.is_none()
    }

    /// Returns the new value of the column `lifecycle`, or `None` to keep it.
    pub(super) fn mode(&self) -> Option<&'static str> {
        self.managed
            .map(|managed| if managed { "managed" } else { "recorded" })
    }
}

/// Updates a tenant and records the changed settings.
pub async fn update(
    home: &mut PooledConnection,
    context: SystemContext,
    tenant: TenantId,
    settings: &TenantSettings,
) -> Result<(), Error> {
    let name = settings.name.as_ref().map(SingleLine::as_str);
    let currency = settings.default_currency.map(Currency::code);
    let tx = home.begin();
    table::update(&tx, tenant, settings).await?;
    let lifecycle = &settings.lifecycle;
    if !lifecycle.is_empty() {
        table::update_lifecycle(&tx, tenant, lifecycle).await?;
    }
    table::notify_clients_changed(&tx, Some(tenant)).await?;
    let changes: [(&str, Option<Value>); 9] = [
        ("name", name.map(Value::from)),
        ("default_currency", currency.map(Value::from)),
        ("lifecycle", lifecycle.mode().map(Value::from)),
        ("recent_sign_in", settings.recent_sign_in.map(Value::from)),
        (
            "session_idle_timeout",
            settings.session_idle_timeout.map(Value::from),
        ),
        (
            "session_absolute_timeout",
            settings.session_absolute_timeout.map(Value::from),
        ),
        ("self_service", settings.self_service.map(Value::from)),
        ("unpaid_after_days", lifecycle.unpaid_after.map(Value::from)),
        (
            "expired_after_days",
            lifecycle.expired_after.map(Value::from),
        ),
    ];
    let data: Map<String, Value> = changes
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect();
    context
        .record(&tx, tenant, tenant.uuid(), EventKind::TenantUpdated, &data)
        .await?;
    tx.commit().await
}
