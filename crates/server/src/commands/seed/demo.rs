//! Writes the demo data: replays each subscriber's history, with the dates, events and rules that
//! applied at the time.

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    BillingCycle, Dunning, EventKind, Id, Lifecycle, Money, NewPayment, NewSubscription, Offer,
    Payment, PaymentChanges, PaymentStatus, Plan, PlanDetails, PlanId, Subscription,
    SubscriptionChanges, SubscriptionStatus, TenantId, User,
};
use serde_json::json;

use super::fixtures::{PaymentHabit, Subscriber};
use crate::{
    auth::Tenant,
    clock::IdGenerator,
    db::{Databases, PooledConnection, Transaction},
    events::{self, Actor, Event},
    randomness::Randomness,
    record::ChangeContext,
    subscription_payments,
    subscription_plans::{self, PlanView},
    subscriptions, users,
};

const IDS: IdGenerator = IdGenerator(Randomness);
/// A managed lifecycle that applies to the whole history.
const LIFECYCLE: Lifecycle = Lifecycle::Managed(Dunning {
    since: Timestamp::UNIX_EPOCH,
    unpaid_after: 7,
    expired_after: 30,
});
const DAY: SignedDuration = SignedDuration::from_hours(24);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// The demo data of a tenant while it is written.
pub struct Demo {
    connection: PooledConnection,
    tenant: TenantId,
    now: Timestamp,
    plans: [Offer; 3],
    /// How many payments have been recorded.
    pub payments: usize,
}

impl Demo {
    /// Creates the plans.
    pub async fn create(db: &Databases, tenant: &Tenant, now: Timestamp) -> anyhow::Result<Self> {
        let mut connection = db.cell(&tenant.cell)?.connection().await?;
        let tx = connection.begin();
        let created_at = now.saturating_sub(DAY * 500)?;
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
        .map(|new| Plan::create(new, IDS.generate::<PlanId>(created_at), created_at));
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
            let event = event(
                tenant.id,
                EventKind::PlanCreated,
                plan.id,
                created_at,
                &data,
            );
            events::record(&tx, &event).await?;
        }
        tx.commit().await?;
        Ok(Self {
            connection,
            tenant: tenant.id,
            now,
            plans: plans.map(|plan| Offer {
                plan: plan.id,
                price: plan.details.price,
                billing_cycle: plan.details.billing_cycle,
                is_active: true,
            }),
            payments: 0,
        })
    }

    /// Creates a subscriber and replays its history until now.
    pub async fn add_subscriber(&mut self, subscriber: &Subscriber) -> anyhow::Result<()> {
        let tx = self.connection.begin();
        let offer = self
            .plans
            .get(subscriber.plan)
            .context("the subscriber's plan does not exist")?;
        let history = SubscriberHistory {
            tx: &tx,
            tenant: self.tenant,
            price: offer.price,
        };
        let subscription = history.subscribe(subscriber, offer).await?;
        self.payments += history
            .replay(subscription, subscriber.habit, self.now)
            .await?;
        tx.commit().await?;
        Ok(())
    }
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

fn event<T>(
    tenant: TenantId,
    kind: EventKind,
    subject: impl Id,
    at: Timestamp,
    data: &T,
) -> Event<'_, T> {
    Event {
        id: IDS.generate(at),
        at,
        tenant,
        kind,
        subject: subject.uuid(),
        actor: Actor::default(),
        data,
    }
}

struct SubscriberHistory<'a> {
    tx: &'a Transaction<'a>,
    tenant: TenantId,
    price: Money,
}

impl<'a> SubscriberHistory<'a> {
    fn change_at(&self, now: Timestamp) -> ChangeContext<'a> {
        ChangeContext {
            tenant: self.tenant,
            actor: Actor::default(),
            ids: IDS,
            now,
            tx: self.tx,
        }
    }

    fn is_free(&self) -> bool {
        self.price.minor_units() == 0
    }

    /// Creates the user and its subscription.
    async fn subscribe(
        &self,
        subscriber: &Subscriber,
        offer: &Offer,
    ) -> anyhow::Result<Subscription> {
        let at = subscriber.starts_at;
        let user = User {
            id: IDS.generate(at),
            email: subscriber.email.parse()?,
            created_at: at,
        };
        if !users::table::insert(self.tx, self.tenant, &user).await? {
            bail!("there is already a user {}", subscriber.email);
        }
        let data = json!({"id": user.id.to_string()});
        let created = event(self.tenant, EventKind::UserCreated, user.id, at, &data);
        events::record(self.tx, &created).await?;
        let trial_end = at.saturating_add(DAY * 14)?;
        let new = NewSubscription {
            status: subscriber.on_trial.then_some(SubscriptionStatus::OnTrial),
            starts_at: Some(at),
            renews_at: subscriber.on_trial.then_some(trial_end),
            ..NewSubscription::new(user.id)
        };
        let created = Subscription::create(new, offer, IDS.generate(at), at);
        let Ok(subscription) = created else {
            bail!("{}: {created:?}", subscriber.email);
        };
        self.change_at(at)
            .insert_subscription(&subscription)
            .await?;
        Ok(subscription)
    }

    /// Replays renewals and payments until `now`. Returns the number of payments.
    async fn replay(
        &self,
        mut subscription: Subscription,
        habit: PaymentHabit,
        now: Timestamp,
    ) -> anyhow::Result<usize> {
        let mut periods_paid = 0;
        let mut last_payment = None;
        while let Some(renewal) = subscription.renews_at.filter(|renewal| *renewal <= now) {
            let before_renewal = renewal
                .saturating_sub(SignedDuration::from_hours(6))?
                .max(subscription.updated_at.saturating_add(MINUTE)?);
            let has_stopped = match habit {
                PaymentHabit::Stops(after) | PaymentHabit::Cancels(after) => periods_paid >= after,
                PaymentHabit::OnTime | PaymentHabit::Late | PaymentHabit::Refunded => false,
            };
            if has_stopped {
                if matches!(habit, PaymentHabit::Cancels(_)) {
                    subscription = self.cancel(subscription, before_renewal).await?;
                }
                break;
            }
            if self.is_free() {
                subscription = self
                    .change_at(renewal)
                    .catch_up(subscription, &LIFECYCLE)
                    .await?;
                periods_paid += 1;
                continue;
            }
            let paid_at = match habit {
                PaymentHabit::Late => renewal.saturating_add(DAY * 3)?,
                _ => before_renewal,
            };
            if paid_at > now {
                break;
            }
            let (payment, paid) = self.pay(subscription, paid_at).await?;
            subscription = self
                .change_at(renewal.max(paid_at))
                .catch_up(paid, &LIFECYCLE)
                .await?;
            last_payment = Some(payment);
            periods_paid += 1;
        }
        let mut subscription = self
            .change_at(now)
            .catch_up(subscription, &LIFECYCLE)
            .await?;
        let next_change = now.max(subscription.updated_at.saturating_add(MINUTE)?);
        // Subscribers that pay on time have also paid for the next period.
        let pays_ahead =
            matches!(habit, PaymentHabit::OnTime | PaymentHabit::Refunded) && !self.is_free();
        if pays_ahead
            && matches!(
                subscription.status,
                SubscriptionStatus::Active | SubscriptionStatus::OnTrial
            )
        {
            (_, subscription) = self.pay(subscription, next_change).await?;
            periods_paid += 1;
        }
        // The subscriber cancels now if the renewal before which it cancels is still in the future.
        if matches!(habit, PaymentHabit::Cancels(_)) && subscription.has_access(now) {
            self.cancel(subscription, next_change).await?;
        }
        if let Some(payment) = last_payment.filter(|_| habit == PaymentHabit::Refunded) {
            self.refund(&payment).await?;
        }
        Ok(if self.is_free() { 0 } else { periods_paid })
    }

    async fn cancel(
        &self,
        subscription: Subscription,
        at: Timestamp,
    ) -> anyhow::Result<Subscription> {
        let changes = SubscriptionChanges {
            status: Some(SubscriptionStatus::Cancelled),
            ..SubscriptionChanges::default()
        };
        let Ok(Some(cancelled)) = subscription.update(&changes, at) else {
            return Ok(subscription);
        };
        let kind = EventKind::SubscriptionUpdated;
        self.change_at(at)
            .save_subscription(kind, &subscription, &cancelled)
            .await?;
        Ok(cancelled)
    }

    /// Records a payment for one period.
    async fn pay(
        &self,
        subscription: Subscription,
        at: Timestamp,
    ) -> anyhow::Result<(Payment, Subscription)> {
        let new = NewPayment {
            status: Some(PaymentStatus::Completed),
            ..NewPayment::new(subscription.id, self.price)
        };
        let Ok(payment) = Payment::create(new, IDS.generate(at), at) else {
            bail!("the demo payment is invalid");
        };
        let id = subscription.id;
        let mut change = self.change_at(at);
        subscription_payments::insert_and_apply(
            &mut change,
            payment.clone(),
            subscription,
            &LIFECYCLE,
        )
        .await?;
        let paid = subscriptions::table::lock(self.tx, self.tenant, id).await?;
        Ok((payment, paid.context("the subscription no longer exists")?))
    }

    /// Records a full refund two days after the payment.
    async fn refund(&self, payment: &Payment) -> anyhow::Result<()> {
        let at = payment.updated_at.saturating_add(DAY * 2)?;
        let changes = PaymentChanges {
            status: Some(PaymentStatus::Refunded),
            ..PaymentChanges::default()
        };
        if let Ok(Some(refunded)) = payment.update(&changes, at) {
            subscription_payments::save(&self.change_at(at), payment, &refunded).await?;
        }
        Ok(())
    }
}
