//! Demo data: three plans, 240 subscribers and 14 months of payments. `perennial seed` and the console fill a sandbox with
//! it.

use anyhow::Context;
use jiff::Timestamp;
use perennial_domain::Lifecycle;

use super::apply_all_due;
use crate::{
    auth::{
        SystemContext, Tenant,
        tenants::{self, LifecycleSettings, TenantSettings},
    },
    db::Databases,
};

mod demo_plans;
mod demo_subscribers;
mod subscriber_history;
mod subscriber_replay;

pub use demo_subscribers::SUBSCRIBER_COUNT;

/// How many records were created.
#[derive(Debug, Clone, Copy)]
pub struct DemoDataCounts {
    pub plans: usize,
    pub subscribers: usize,
    pub payments: usize,
}

/// Creates the data of a tenant until `now`, and sets its lifecycle to managed. Calls `progress` after each subscriber, with
/// their number. The tenant must not have live subscriptions that managed billing cannot charge.
pub async fn create(
    db: &Databases,
    context: SystemContext,
    mut tenant: Tenant,
    now: Timestamp,
    mut progress: impl FnMut(usize),
) -> anyhow::Result<DemoDataCounts> {
    let plans = demo_plans::create_plans(db, &tenant, now).await?;
    if tenant.lifecycle == Lifecycle::Recorded {
        let settings = TenantSettings {
            lifecycle: LifecycleSettings {
                managed: Some(true),
                since: now,
                ..LifecycleSettings::default()
            },
            ..TenantSettings::default()
        };
        let mut home = db.home()?.connection().await?;
        tenants::update(&mut home, context, tenant.id, &settings).await?;
        let tenants = tenants::table::list(&home).await?.into_iter();
        let mut changed = tenants.filter(|(other, _)| other.id == tenant.id);
        let (changed, _) = changed.next().context("the tenant was deleted")?;
        tenant = changed;
    }
    let mut demo = demo_plans::Demo::new(db, &tenant, &plans, now).await?;
    for number in 0..SUBSCRIBER_COUNT {
        demo.add_subscriber(&demo_subscribers::subscriber(number, now))
            .await?;
        progress(number + 1);
    }
    let payments = demo.finish();
    apply_all_due(db, &tenant.cell, now).await?;
    Ok(DemoDataCounts {
        plans: plans.len(),
        subscribers: SUBSCRIBER_COUNT,
        payments,
    })
}
