//! The lives of the demo's people, told from their beginning: each step is written as it would have been then.

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    BillingCycle, Changes, Dunning, EventKind, Id, Lifecycle, Money, NewPayment, NewPlan,
    NewSubscription, Offer, Payment, PaymentChanges, PaymentStatus, Plan, PlanId, Status,
    Subscription, TenantId, User, Variants,
};
use serde_json::json;

use super::people::{Habit, Person};
use crate::{
    callers::Tenant,
    clock::Ids,
    db::{Connection, Db, Transaction},
    events::{self, By, Event},
    randomness::Randomness,
    subscription_payments,
    subscription_plans::{self, PlanView},
    subscriptions::{self, Change},
    users,
};

const IDS: Ids = Ids(Randomness);
/// As if time had always been moved.
const ALWAYS: Lifecycle = Lifecycle::Managed(Dunning {
    since: Timestamp::UNIX_EPOCH,
    unpaid_after: 7,
    expired_after: 30,
});

/// What is told, and to where.
pub struct Demo {
    connection: Connection,
    tenant: TenantId,
    now: Timestamp,
    plans: [Offer; 3],
    /// How many payments there were.
    pub payments: usize,
}

impl Demo {
    /// Makes the plans.
    pub async fn begin(db: &Db, tenant: &Tenant, now: Timestamp) -> anyhow::Result<Self> {
        let mut connection = db.cell(&tenant.cell)?.connection().await?;
        let tx = connection.begin();
        let long_ago = now.saturating_sub(SignedDuration::from_hours(24 * 500))?;
        let plans = [
            plan("free", "Free", (0, 0, 1), "Search", tenant)?,
            plan("pro", "Pro", (1_999, 1, 10), "Search, Export", tenant)?,
            plan(
                "team",
                "Team",
                (4_900, 2, 100),
                "Search, Export, Single sign-on",
                tenant,
            )?,
        ]
        .map(|terms| Plan::create(terms, IDS.next::<PlanId>(long_ago), long_ago));
        for plan in &plans {
            let slug = &plan.terms.slug;
            match subscription_plans::table::insert(&tx, tenant.id, plan).await {
                Err(error) if error.constraint().is_some() => bail!(
                    "there is a plan with the slug {slug} already: the demo is for an empty tenant; \
                     take another database, or make a tenant for it (perennial tenant create)"
                ),
                inserted => inserted?,
            }
            let data = PlanView::from(plan);
            let event = event(tenant.id, EventKind::PlanCreated, plan.id, long_ago, &data);
            events::record(&tx, &event).await?;
        }
        tx.commit().await?;
        Ok(Self {
            connection,
            tenant: tenant.id,
            now,
            plans: plans.map(|plan| Offer {
                plan: plan.id,
                price: plan.terms.price,
                billing_cycle: plan.terms.billing_cycle,
                is_active: true,
            }),
            payments: 0,
        })
    }

    /// Tells somebody's life until now.
    pub async fn live(&mut self, person: &Person) -> anyhow::Result<()> {
        let tx = self.connection.begin();
        let offer = self.plans.get(person.plan).context("three plans")?;
        let life = Life {
            tx: &tx,
            tenant: self.tenant,
            price: offer.price,
        };
        let one = life.begin(person, offer).await?;
        self.payments += life.go_on(one, person.habit, self.now).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// What a plan of the demo is: its price, tier and quota, and what is in it.
fn plan(
    slug: &str,
    name: &str,
    (minor, tier, quota): (i64, i64, i64),
    features: &str,
    tenant: &Tenant,
) -> anyhow::Result<NewPlan> {
    let price = Money::of_minor_units(minor, tenant.default_currency);
    Ok(NewPlan {
        name: name.parse()?,
        slug: slug.parse()?,
        price: price.context("a price")?,
        billing_cycle: BillingCycle::Monthly,
        product_id: None,
        variants: Variants::default(),
        href: None,
        description: None,
        node_quota: quota.try_into()?,
        features: Some(features.parse()?),
        most_popular: slug == "pro",
        tier: tier.try_into()?,
        is_active: true,
    })
}

fn event<T>(
    tenant: TenantId,
    kind: EventKind,
    subject: impl Id,
    at: Timestamp,
    data: &T,
) -> Event<'_, T> {
    Event {
        id: IDS.next(at),
        at,
        tenant,
        kind,
        subject: subject.uuid(),
        by: By::default(),
        data,
    }
}

/// One life.
struct Life<'a> {
    tx: &'a Transaction<'a>,
    tenant: TenantId,
    price: Money,
}

impl<'a> Life<'a> {
    fn change(&self, now: Timestamp) -> Change<'a> {
        Change {
            tenant: self.tenant,
            by: By::default(),
            ids: IDS,
            now,
            tx: self.tx,
        }
    }

    /// Signs up, and subscribes.
    async fn begin(&self, person: &Person, offer: &Offer) -> anyhow::Result<Subscription> {
        let at = person.starts_at;
        let user = User {
            id: IDS.next(at),
            email: person.email.parse()?,
            created_at: at,
        };
        if !users::table::insert(self.tx, self.tenant, &user).await? {
            bail!("there is a user {} already", person.email);
        }
        let data = json!({"id": user.id.to_string()});
        let created = event(self.tenant, EventKind::UserCreated, user.id, at, &data);
        events::record(self.tx, &created).await?;
        let two_weeks = at.saturating_add(SignedDuration::from_hours(14 * 24))?;
        let new = NewSubscription {
            user: user.id,
            external_id: None,
            billing_cycle: None,
            status: person.on_trial.then_some(Status::OnTrial),
            is_active: None,
            starts_at: Some(at),
            renews_at: person.on_trial.then_some(two_weeks),
            ends_at: None,
        };
        let started = Subscription::start(new, offer, IDS.next(at), at);
        let Ok(one) = started else {
            bail!("{}: {started:?}", person.email);
        };
        self.change(at).add(&one).await?;
        Ok(one)
    }

    /// Pays, or does not, until `now`; answers how often it paid.
    async fn go_on(
        &self,
        mut one: Subscription,
        habit: Habit,
        now: Timestamp,
    ) -> anyhow::Result<usize> {
        let mut paid = 0;
        let mut last = None;
        while let Some(renewal) = one.renews_at.filter(|renewal| *renewal <= now) {
            let before = renewal.saturating_sub(SignedDuration::from_hours(6))?;
            let before = before.max(
                one.updated_at
                    .saturating_add(SignedDuration::from_mins(1))?,
            );
            let stopped = match habit {
                Habit::Stops(after) | Habit::Cancels(after) => paid >= after,
                Habit::InTime | Habit::Late | Habit::PaidBack => false,
            };
            if stopped {
                if matches!(habit, Habit::Cancels(_)) {
                    one = self.cancel(one, before).await?;
                }
                break;
            }
            if self.price.minor_units() == 0 {
                one = self.change(renewal).catch_up(one, &ALWAYS).await?;
                paid += 1;
                continue;
            }
            let at = match habit {
                Habit::Late => renewal.saturating_add(SignedDuration::from_hours(3 * 24))?,
                _ => before,
            };
            if at > now {
                break;
            }
            let (payment, after) = self.pay(one, at).await?;
            one = self
                .change(renewal.max(at))
                .catch_up(after, &ALWAYS)
                .await?;
            last = Some(payment);
            paid += 1;
        }
        let mut one = self.change(now).catch_up(one, &ALWAYS).await?;
        let a_moment = |after: Timestamp| after.saturating_add(SignedDuration::from_mins(1));
        // Who pays in time has paid for the next period too.
        let pays = matches!(habit, Habit::InTime | Habit::PaidBack) && self.price.minor_units() > 0;
        if pays && matches!(one.status, Status::Active | Status::OnTrial) {
            (_, one) = self
                .pay(one.clone(), now.max(a_moment(one.updated_at)?))
                .await?;
            paid += 1;
        }
        // Who meant to cancel and has not had the time does it now.
        if matches!(habit, Habit::Cancels(_)) && one.has_access(now) {
            let at = now.max(a_moment(one.updated_at)?);
            self.cancel(one, at).await?;
        }
        if let Some(payment) = last.filter(|_| habit == Habit::PaidBack) {
            self.pay_back(&payment).await?;
        }
        Ok(if self.price.minor_units() == 0 {
            0
        } else {
            paid
        })
    }

    /// Will not renew.
    async fn cancel(&self, one: Subscription, at: Timestamp) -> anyhow::Result<Subscription> {
        let sent = Changes {
            status: Some(Status::Cancelled),
            ..Changes::default()
        };
        let Ok(Some(cancelled)) = one.amend(&sent, at) else {
            return Ok(one);
        };
        let kind = EventKind::SubscriptionUpdated;
        self.change(at).save(kind, &one, &cancelled).await?;
        Ok(cancelled)
    }

    /// Pays for a period.
    async fn pay(
        &self,
        one: Subscription,
        at: Timestamp,
    ) -> anyhow::Result<(Payment, Subscription)> {
        let new = NewPayment {
            subscription: one.id,
            amount: self.price,
            external_id: None,
            status: Some(PaymentStatus::Completed),
            refunded: None,
        };
        let Ok(payment) = Payment::make(new, IDS.next(at), at) else {
            bail!("the demo pays what cannot be paid");
        };
        let id = one.id;
        let mut change = self.change(at);
        subscription_payments::add(&mut change, payment.clone(), one, &ALWAYS).await?;
        let after = subscriptions::table::lock(self.tx, self.tenant, id).await?;
        Ok((payment, after.context("it was there")?))
    }

    /// Gives it back two days later.
    async fn pay_back(&self, payment: &Payment) -> anyhow::Result<()> {
        let at = payment
            .updated_at
            .saturating_add(SignedDuration::from_hours(48))?;
        let sent = PaymentChanges {
            status: Some(PaymentStatus::Refunded),
            ..PaymentChanges::default()
        };
        if let Ok(Some(refunded)) = payment.amend(&sent, at) {
            subscription_payments::save(&self.change(at), payment, &refunded).await?;
        }
        Ok(())
    }
}
