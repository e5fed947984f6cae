//! Making and changing tenants; what `perennial tenant` does.

pub mod table;

use jiff::Timestamp;
use perennial_domain::{Currency, EventKind, Id, Lifecycle, Line, TenantId};
use serde_json::json;

use super::{Operator, Tenant};
use crate::db::{Connection, Error, HOME, Transaction};

/// Makes a tenant.
pub async fn create(
    home: &mut Connection,
    operator: Operator,
    name: &Line<200>,
    cell: &str,
    default_currency: Currency,
) -> Result<TenantId, Error> {
    let tenant = new(operator, cell, default_currency);
    let tx = home.begin();
    insert(&tx, operator, &tenant, name.as_str()).await?;
    tx.commit().await?;
    Ok(tenant.id)
}

/// Makes the first tenant if there is none, so that most installations never think of tenants.
/// However many instances start at once, there is one.
pub async fn ensure_one(
    home: &mut Connection,
    operator: Operator,
    default_currency: Currency,
) -> Result<(), Error> {
    let tx = home.begin();
    if table::lock_and_see_none(&tx).await? {
        let tenant = new(operator, HOME, default_currency);
        insert(&tx, operator, &tenant, "default").await?;
        tx.commit().await?;
    }
    Ok(())
}

/// One with nothing set but what has no default.
fn new(operator: Operator, cell: &str, default_currency: Currency) -> Tenant {
    Tenant {
        id: operator.ids.next(operator.now),
        cell: cell.to_owned(),
        default_currency,
        recent_sign_in: 0,
        lifecycle: Lifecycle::Recorded,
    }
}

async fn insert(
    tx: &Transaction<'_>,
    operator: Operator,
    tenant: &Tenant,
    name: &str,
) -> Result<(), Error> {
    table::insert(tx, tenant, name, operator.now).await?;
    let data = json!({"name": name, "cell": tenant.cell, "default_currency": tenant.default_currency.code()});
    operator
        .record(
            tx,
            tenant.id,
            tenant.id.uuid(),
            EventKind::TenantCreated,
            &data,
        )
        .await
}

/// Nobody's time is moved from a later instant on than this one: a sandbox's clock was put back.
pub async fn since_now_at_most(home: &mut Connection, now: Timestamp) -> Result<(), Error> {
    let tx = home.begin();
    table::lifecycle_since_at_most(&tx, now).await?;
    tx.commit().await
}

/// What can be set.
#[derive(Debug, Default)]
pub struct Settings {
    /// Another name.
    pub name: Option<Line<200>>,
    /// The currency of amounts that name none, from now on.
    pub default_currency: Option<Currency>,
    /// How many seconds ago a user must have signed in at most to delete the account; 0 for any time.
    pub recent_sign_in: Option<i32>,
    /// Who moves time.
    pub lifecycle: LifecycleSettings,
}

/// What can be set of who moves time for a tenant's subscriptions.
#[derive(Debug, Default)]
pub struct LifecycleSettings {
    /// Whether the service does.
    pub managed: Option<bool>,
    /// How many days after it was due a subscription is unpaid.
    pub unpaid_after: Option<i32>,
    /// How many days after it was due a subscription is over.
    pub expired_after: Option<i32>,
    /// From when on.
    pub since: Timestamp,
}

impl LifecycleSettings {
    /// Whether there is nothing to set.
    pub fn is_empty(&self) -> bool {
        self.managed.is_none() && self.unpaid_after.is_none() && self.expired_after.is_none()
    }

    /// The word that is stored.
    pub(super) fn word(&self) -> Option<&'static str> {
        self.managed
            .map(|managed| if managed { "managed" } else { "recorded" })
    }
}

/// Changes what is given, and nothing else.
pub async fn set(
    home: &mut Connection,
    operator: Operator,
    tenant: TenantId,
    settings: &Settings,
) -> Result<(), Error> {
    let name = settings.name.as_ref().map(Line::as_str);
    let currency = settings.default_currency.map(Currency::code);
    let tx = home.begin();
    table::set(&tx, tenant, currency, name, settings.recent_sign_in).await?;
    let lifecycle = &settings.lifecycle;
    if !lifecycle.is_empty() {
        table::set_lifecycle(&tx, tenant, lifecycle).await?;
    }
    let mut data = serde_json::Map::new();
    let given = [
        ("name", name),
        ("default_currency", currency),
        ("lifecycle", lifecycle.word()),
    ];
    for (key, value) in given {
        if let Some(value) = value {
            data.insert(key.to_owned(), value.into());
        }
    }
    if let Some(seconds) = settings.recent_sign_in {
        data.insert("recent_sign_in".to_owned(), seconds.into());
    }
    let days = [
        ("unpaid_after_days", lifecycle.unpaid_after),
        ("expired_after_days", lifecycle.expired_after),
    ];
    for (key, value) in days {
        if let Some(value) = value {
            data.insert(key.to_owned(), value.into());
        }
    }
    operator
        .record(&tx, tenant, tenant.uuid(), EventKind::TenantUpdated, &data)
        .await?;
    tx.commit().await
}
