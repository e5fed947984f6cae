//! Writes the demo data: the plans, and each subscriber with its history.

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{BillingCycle, EventKind, Id, Money, Offer, Plan, PlanDetails, PlanId};

use super::{
    demo_subscribers::Subscriber,
    subscriber_history::{self, History},
};
use crate::{
    auth::Tenant,
    db::{Databases, Error, PooledConnection},
    events,
    subscription_plans::{self, PlanView},
    subscriptions,
};

/// The plans of the demo, cheapest first.
pub type Plans = [Offer; 3];

/// Creates the plans.
pub async fn create_plans(
    db: &Databases,
    tenant: &Tenant,
    now: Timestamp,
) -> anyhow::Result<Plans> {
    let mut connection = db.cell(&tenant.cell)?.connection().await?;
    let tx = connection.begin();
    let created_at = now.saturating_sub(SignedDuration::from_hours(24 * 500))?;
    let mut team = plan(
        "team",
        "Team",
        (4_900, 2, 100),
        "Search, Export, Single sign-on",
        tenant,
    )?;
    team.trial_days = 14.try_into()?;
    let plans = [
        plan("free", "Free", (0, 0, 1), "Search", tenant)?,
        plan("pro", "Pro", (1_999, 1, 10), "Search, Export", tenant)?,
        team,
    ]
    .map(|new| {
        Plan::create(
            new,
            subscriber_history::IDS.generate::<PlanId>(created_at),
            created_at,
        )
    });
    for plan in &plans {
        let slug = &plan.details.slug;
        match subscription_plans::table::insert(&tx, tenant.id, plan).await {
            Err(error) if error.constraint().is_some() => bail!(
                "there is already a plan with the slug {slug}, and the demo requires a tenant without data; use \
                 another database or create a tenant (`perennial tenant create`)"
            ),
            inserted => inserted?,
        }
        let data = PlanView::from(plan);
        let kind = EventKind::PlanCreated;
        let event = subscriber_history::event(tenant.id, kind, plan.id.uuid(), created_at, &data);
        events::record(&tx, &event).await?;
    }
    tx.commit().await?;
    Ok(plans.map(|plan| Offer {
        plan: plan.id,
        slug: plan.details.slug,
        price: plan.details.price,
        billing_cycle: plan.details.billing_cycle,
        trial_days: u16::try_from(plan.details.trial_days.get()).unwrap_or(0),
        is_active: true,
    }))
}

fn plan(
    slug: &str,
    name: &str,
    (price_minor, tier, node_quota): (i64, i64, i64),
    features: &str,
    tenant: &Tenant,
) -> anyhow::Result<PlanDetails> {
    let price = Money::from_minor_units(price_minor, tenant.default_currency);
    let price = price.context("the price is out of range")?;
    Ok(PlanDetails {
        node_quota: node_quota.try_into()?,
        features: Some(features.parse()?),
        most_popular: slug == "pro",
        tier: tier.try_into()?,
        ..PlanDetails::new(name.parse()?, slug.parse()?, price, BillingCycle::Monthly)
    })
}

/// The demo data of a tenant while it is written.
pub struct Demo {
    connection: PooledConnection,
    scope: subscriptions::table::Scope,
    now: Timestamp,
    plans: Plans,
    payments: usize,
}

impl Demo {
    pub async fn new(
        db: &Databases,
        tenant: &Tenant,
        plans: &Plans,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            connection: db.cell(&tenant.cell)?.connection().await?,
            scope: subscriptions::scope(tenant),
            now,
            plans: *plans,
            payments: 0,
        })
    }

    /// Creates a subscriber and replays its history until now.
    ///
    /// Tries again once if the database was unavailable: it rejects events of a month while a partition is created for it.
    pub async fn add_subscriber(&mut self, subscriber: &Subscriber) -> anyhow::Result<()> {
        let added = match self.try_add_subscriber(subscriber).await {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Unavailable(_))) => {
                self.try_add_subscriber(subscriber).await
            }
            added => added,
        };
        self.payments += added?;
        Ok(())
    }

    /// Returns the number of payments.
    async fn try_add_subscriber(&mut self, subscriber: &Subscriber) -> anyhow::Result<usize> {
        let tx = self.connection.begin();
        let mut history = History::start(&tx, self.scope, subscriber, &self.plans).await?;
        history.replay(subscriber, &self.plans, self.now).await?;
        let payments = history.payments;
        tx.commit().await?;
        Ok(payments)
    }

    /// Releases the connection. Returns how many payments have been recorded.
    pub fn finish(self) -> usize {
        self.payments
    }
}
