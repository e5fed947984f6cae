//! `perennial subscription`: what a support person looks up, and what a developer tries first.

use anyhow::{Context, bail};
use clap::Subcommand;
use perennial_domain::{
    BillingCycle, Email, Id, Invalid, NewSubscription, Rule, Slug, Status, Subscription,
    SubscriptionId, UserId,
};
use serde_json::{Value, json};

use super::{
    prepare,
    story::{self, Story},
    tenant::Which,
    timeline,
};
use crate::{
    db::Db,
    events::By,
    subscription_payments::{self, PaymentView},
    subscription_plans,
    subscriptions::{Change, SubscriptionView, table},
    users,
};

/// Look up and make subscriptions.
#[derive(Debug, Subcommand)]
pub enum SubscriptionCommand {
    /// Show a subscription, what was paid for it and what happened to it
    #[command(after_help = "Examples:
  perennial subscription show sub_0192f0c1a2b37c4d8e5f60718293a4b5
  perennial user show ada@example.com          all that a user has, and why")]
    Show {
        /// Its id
        id: SubscriptionId,
        #[command(flatten)]
        tenant: Which,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make a subscription, as POST /subscriptions does
    #[command(after_help = "Example:
  perennial subscription create --user ada@example.com --plan pro --show-curl")]
    Create(Create),
}

/// A user by e-mail address or id.
#[derive(Debug, Clone)]
enum Somebody {
    Email(Email),
    Id(UserId),
}

impl std::str::FromStr for Somebody {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            let email = text.parse().map(Self::Email);
            return email.map_err(|wrong: Invalid| wrong.message);
        }
        let id = text.parse().map(Self::Id);
        id.map_err(|_| "expected an e-mail address or a user's id (usr_…)".to_owned())
    }
}

/// What is to be made.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Who: an e-mail address or a user's id
    #[arg(long)]
    user: Somebody,
    /// Which plan, by its slug
    #[arg(long)]
    plan: Slug,
    /// Where it stands [default: active]
    #[arg(long)]
    status: Option<Status>,
    /// How often it is paid for [default: as the plan is]
    #[arg(long)]
    billing_cycle: Option<BillingCycle>,
    /// Also print the curl that does the same
    #[arg(long)]
    show_curl: bool,
    #[command(flatten)]
    tenant: Which,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl SubscriptionCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = prepare::open().await?;
        match self {
            Self::Show { id, tenant, json } => show(&db, id, &tenant, json).await,
            Self::Create(create) => create.run(&db).await,
        }
    }
}

async fn show(db: &Db, id: SubscriptionId, tenant: &Which, json: bool) -> anyhow::Result<()> {
    let home = db.home()?.connection().await?;
    let tenant = tenant.tenant(&home).await?;
    let engine = db.cell(&tenant.cell)?;
    let found = table::find(engine, tenant.id, id).await?;
    let one = found.with_context(|| {
        format!(
            "no subscription has this id: {id} (if it was deleted, `perennial user show {id}` tells of it)"
        )
    })?;
    let now = prepare::clocks(db).await?.billing.now();
    let view = SubscriptionView::at(&one, now);
    let connection = engine.connection().await?;
    let payments = subscription_payments::table::of_user(&connection, tenant.id, one.user).await?;
    let mut payments = payments;
    payments.retain(|(paid, _)| paid.subscription == id);
    if json {
        let payments = payments
            .iter()
            .map(|(paid, deleted)| story::json(PaymentView::from(paid), *deleted));
        let payments: Vec<Value> = payments.collect::<Result<_, _>>()?;
        println!("{}", json!({"subscription": view, "payments": payments}));
        return Ok(());
    }
    let mut subjects = vec![one.id.uuid()];
    subjects.extend(payments.iter().map(|(paid, _)| paid.id.uuid()));
    let story = Story {
        slugs: subscription_plans::table::slugs(&connection, tenant.id).await?,
        payments: &payments,
        lifecycle: &tenant.lifecycle,
        now,
    };
    story.print(&(one, None));
    timeline::print(&connection, tenant.id, &subjects).await
}

impl Create {
    async fn run(self, db: &Db) -> anyhow::Result<()> {
        let home = db.home()?.connection().await?;
        let tenant = self.tenant.tenant(&home).await?;
        let engine = db.cell(&tenant.cell)?;
        let user = match &self.user {
            Somebody::Email(email) => users::table::find_by_email(engine, tenant.id, email).await?,
            Somebody::Id(id) => users::table::find(engine, tenant.id, *id).await?,
        };
        let user = user.context(
            "there is no such user in this tenant; users sign up, or POST /users makes them",
        )?;
        let plan = subscription_plans::table::find(engine, tenant.id, &self.plan).await?;
        let plan = plan.with_context(|| {
            format!(
                "there is no plan with the slug {}; GET /subscription-plans lists them",
                self.plan
            )
        })?;
        let (clocks, operator) = (prepare::clocks(db).await?, prepare::operator());
        let mut connection = engine.connection().await?;
        let tx = connection.begin();
        let (user_stays, offer) = tokio::try_join!(
            biased;
            users::table::hold(&tx, tenant.id, user.id),
            subscription_plans::table::hold_offer(&tx, tenant.id, plan.id),
        )?;
        let (true, Some(offer)) = (user_stays, offer) else {
            bail!("the user or the plan was deleted just now");
        };
        let now = clocks.billing.now();
        let new = NewSubscription {
            user: user.id,
            external_id: None,
            billing_cycle: self.billing_cycle,
            status: self.status,
            is_active: None,
            starts_at: None,
            renews_at: None,
            ends_at: None,
        };
        let started = Subscription::start(new, &offer, operator.ids.next(now), now);
        let one = started.map_err(|wrong| {
            let said: Vec<String> = wrong
                .iter()
                .map(|(_, invalid)| match invalid.rule {
                    Rule::PlanInactive => format!("the plan {} is not offered any more", self.plan),
                    _ => invalid.message.clone(),
                })
                .collect();
            anyhow::anyhow!(said.join("; "))
        })?;
        let change = Change {
            tenant: tenant.id,
            by: By::default(),
            ids: operator.ids,
            now,
            tx: &tx,
        };
        let view = change.add(&one).await?.context("it has no external id")?;
        tx.commit().await?;
        if self.json {
            println!("{}", serde_json::to_string(&view)?);
        } else {
            println!("{}  {}, {}", one.id, one.status, story::why(&one, now));
        }
        if self.show_curl {
            let mut body = json!({"user_id": user.id.to_string(), "subscription_plan_id": plan.id.to_string()});
            if let (Some(fields), Some(status)) = (body.as_object_mut(), self.status) {
                fields.insert("status".to_owned(), json!(status.as_str()));
            }
            if let (Some(fields), Some(cycle)) = (body.as_object_mut(), self.billing_cycle) {
                fields.insert("billing_cycle".to_owned(), json!(cycle.as_str()));
            }
            eprintln!("the same by HTTP:");
            // In lines that fit, and that a shell reads as one.
            let body = body.to_string().replace(",\"", ",\n    \"");
            eprintln!("  curl $URL/subscriptions -H \"client-id: $CLIENT_ID\" --json \\");
            eprintln!("   '{body}'");
        }
        Ok(())
    }
}
