//! The history of one subscriber: what can happen at an instant of the past, stored as the API would
//! have stored it then.
//!
//! Every change first applies what was due before it. What is due after the last one is left to the
//! worker.

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use perennial_domain::{
    CreateContext, EventKind, Id, Money, NewPayment, NewSubscription, Payment, PaymentChanges,
    PaymentStatus, Subscription, SubscriptionChanges, SubscriptionStatus, TenantId, User,
};
use serde_json::json;
use uuid::Uuid;

use super::{demo_plans::Plans, demo_subscribers::Subscriber};
use crate::{
    clock::IdGenerator,
    db::Transaction,
    events::{self, Actor, Event},
    randomness::Randomness,
    record::ChangeContext,
    subscription_payments,
    subscriptions::{self, table::Scope},
    users,
};

pub(super) const IDS: IdGenerator = IdGenerator(Randomness);
pub(super) const MINUTE: SignedDuration = SignedDuration::from_mins(1);

pub(super) fn event<T>(
    tenant: TenantId,
    kind: EventKind,
    subject: Uuid,
    at: Timestamp,
    data: &T,
) -> Event<'_, T> {
    Event {
        id: IDS.generate(at),
        at,
        tenant,
        kind,
        subject,
        actor: Actor::default(),
        data,
    }
}

/// A subscription while its history is written.
pub struct History<'a> {
    tx: &'a Transaction<'a>,
    scope: Scope,
    /// As stored.
    pub subscription: Subscription,
    pub last_payment: Option<Payment>,
    /// How many payments have been recorded.
    pub payments: usize,
}

impl<'a> History<'a> {
    /// Creates the user and its subscription.
    pub async fn start(
        tx: &'a Transaction<'a>,
        scope: Scope,
        subscriber: &Subscriber,
        plans: &Plans,
    ) -> anyhow::Result<Self> {
        let (tenant, lifecycle) = scope;
        let at = subscriber.starts_at;
        let user = User::with_email(subscriber.email.parse()?, IDS.generate(at), at);
        if !users::table::insert(tx, tenant, &user).await? {
            bail!("there is already a user {}", subscriber.email);
        }
        let data = json!({"id": user.id.to_string()});
        let created = event(tenant, EventKind::UserCreated, user.id.uuid(), at, &data);
        events::record(tx, &created).await?;
        let offer = plans.get(subscriber.plan);
        let context = CreateContext {
            offer: offer.context("the subscriber's plan does not exist")?,
            lifecycle,
            had_trial: false,
            id: IDS.generate(at),
            now: at,
        };
        let created = Subscription::create(&NewSubscription::new(user.id), &context);
        let Ok(created) = created else {
            bail!("{}: {created:?}", subscriber.email);
        };
        change_at(tx, tenant, at)
            .insert_subscription(&created)
            .await?;
        Ok(Self {
            tx,
            scope,
            subscription: created.after,
            last_payment: None,
            payments: 0,
        })
    }

    /// Returns the subscription after everything that is due by `at`.
    pub fn at(&self, at: Timestamp) -> Subscription {
        let due = self.subscription.due_transitions(at).pop();
        due.map_or_else(|| self.subscription.clone(), |due| due.after)
    }

    /// Records a completed payment.
    pub async fn pay(&mut self, minor_units: i64, at: Timestamp) -> anyhow::Result<()> {
        self.record_payment(minor_units, PaymentStatus::Completed, at)
            .await
    }

    /// Records a payment that failed.
    pub async fn fail_payment(&mut self, minor_units: i64, at: Timestamp) -> anyhow::Result<()> {
        self.record_payment(minor_units, PaymentStatus::Failed, at)
            .await
    }

    async fn record_payment(
        &mut self,
        minor_units: i64,
        status: PaymentStatus,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        let currency = self.subscription.plan.price.currency();
        let amount = Money::from_minor_units(minor_units, currency);
        let amount = amount.context("the amount is out of range")?;
        let failed = status == PaymentStatus::Failed;
        let new = NewPayment {
            status: Some(status),
            failure_reason: failed.then(|| "card_declined".parse()).transpose()?,
            ..NewPayment::new(self.subscription.id, amount)
        };
        let Ok(payment) = Payment::create(new, IDS.generate(at), at) else {
            bail!("the demo payment is invalid");
        };
        let mut change = change_at(self.tx, self.scope.0, at);
        let subscription = &self.subscription;
        let stored =
            subscription_payments::insert_and_apply(&mut change, payment, subscription).await?;
        self.last_payment = stored;
        self.payments += 1;
        self.reload().await
    }

    /// Changes the last payment: a refund, a dispute, or its outcome.
    pub async fn change_payment(
        &mut self,
        status: PaymentStatus,
        refunded: Option<i64>,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        let Some(payment) = self.last_payment.take() else {
            return Ok(());
        };
        let currency = payment.amount.currency();
        let refunded = refunded.and_then(|refunded| Money::from_minor_units(refunded, currency));
        let changes = PaymentChanges {
            status: Some(status),
            refunded: refunded.map(|refunded| Some(refunded.to_decimal())),
            ..PaymentChanges::default()
        };
        let after = payment.update(&changes, at);
        let Ok(Some(after)) = after else {
            bail!("the demo payment cannot become {status}: {after:?}");
        };
        let mut change = change_at(self.tx, self.scope.0, at);
        let subscription = Some(&self.subscription);
        let stored =
            subscription_payments::update_and_apply(&mut change, &payment, after, subscription)
                .await?;
        self.last_payment = Some(stored);
        self.reload().await
    }

    /// Changes the subscription. Pays a minute earlier what the change lacks.
    pub async fn change(
        &mut self,
        changes: &SubscriptionChanges,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        let pays_at = at.saturating_sub(MINUTE)?;
        let amount_due = match self.subscription.preview(changes, pays_at) {
            Ok(preview) => preview.amount_due,
            Err(error) => bail!("the demo subscription cannot change: {error:?}"),
        };
        if amount_due > 0 {
            self.pay(amount_due, pays_at).await?;
        }
        let applied = self.subscription.update(changes, at);
        let Ok(Some(applied)) = applied else {
            bail!("the demo subscription cannot change: {applied:?}");
        };
        change_at(self.tx, self.scope.0, at)
            .save_applied(EventKind::SubscriptionUpdated, &self.subscription, &applied)
            .await?;
        self.subscription = applied.after;
        Ok(())
    }

    /// Changes the status.
    pub async fn set_status(
        &mut self,
        status: SubscriptionStatus,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        let changes = SubscriptionChanges {
            status: Some(status),
            ..SubscriptionChanges::default()
        };
        self.change(&changes, at).await
    }

    /// Reads the subscription again, after a payment has changed it.
    async fn reload(&mut self) -> anyhow::Result<()> {
        let id = self.subscription.id;
        let subscription = subscriptions::table::lock(self.tx, self.scope, id).await?;
        self.subscription = subscription.context("the subscription no longer exists")?;
        Ok(())
    }
}

fn change_at<'a>(tx: &'a Transaction<'a>, tenant: TenantId, now: Timestamp) -> ChangeContext<'a> {
    ChangeContext {
        tenant,
        actor: Actor::default(),
        ids: IDS,
        now,
        tx,
    }
}
