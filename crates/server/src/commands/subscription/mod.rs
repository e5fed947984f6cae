//! `perennial subscription`: shows, creates and changes subscriptions.

use anyhow::{Context, bail};
use clap::Subcommand;
use perennial_domain::{
    BillingCycle, CreateContext, Decimal, Id, NewSubscription, Quantity, Rule, Slug, Subscription,
    SubscriptionId, SubscriptionStatus,
};
use serde::Serialize;
use serde_json::json;

use super::{
    bootstrap, event_lines,
    explain::{self, SubscriptionReport},
    request_fields::{MetadataArgs, RequestFields, into_error},
    tenant::TenantArg,
    terminal::print_wrapped,
    user_selector::UserIdent,
};
use crate::{
    db::{AgeOrder, Databases},
    http::metadata_field,
    record::ChangeContext,
    subscription_payments::{self, PaymentView},
    subscription_plans::{self, PlanRef},
    subscriptions::{
        self, SubscriptionView,
        ledger::{self, LedgerEntryView},
        table,
    },
    timeline::load_histories,
    user_export::{DeletableView, ProviderReport, ProviderReportJson, payment_view},
    users::{self, UserRef},
};

mod update;

#[derive(Debug, Subcommand)]
pub enum SubscriptionCommand {
    /// Show a subscription, what happens to it next, its payments, its ledger and its events
    #[command(after_help = "Examples:
  perennial subscription show sub_0192f0c1a2b37c4d8e5f60718293a4b5
  perennial user show ada@example.com          all subscriptions of a user")]
    Show {
        /// The subscription's id (sub_…)
        id: SubscriptionId,
        #[command(flatten)]
        tenant: TenantArg,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Create a subscription, as POST /subscriptions does
    #[command(after_help = "Example:
  perennial subscription create --user ada@example.com --plan pro --show-curl")]
    Create(Box<SubscriptionCreateArgs>),
    /// Change a subscription, as PUT /subscriptions/{id} does
    Update(Box<update::SubscriptionUpdateArgs>),
}

#[derive(Debug, clap::Args)]
pub struct SubscriptionCreateArgs {
    /// The user: an email address, or an id as in `user show`
    #[arg(long)]
    user: UserIdent,
    /// The plan's slug
    #[arg(long)]
    plan: Slug,
    /// The initial status [default: on_trial if the plan has a trial; otherwise active, or pending
    /// if the service charges it and it is not free]
    #[arg(long)]
    status: Option<SubscriptionStatus>,
    /// The billing cycle [default: the plan's]
    #[arg(long)]
    billing_cycle: Option<BillingCycle>,
    /// The price of one unit for one billing cycle, such as 19.99 [default: the plan's]
    #[arg(long)]
    price: Option<Decimal>,
    /// How many units of the plan, such as seats [default: 1]
    #[arg(long, value_parser = parse_quantity)]
    quantity: Option<Quantity>,
    #[command(flatten)]
    metadata: MetadataArgs,
    /// Also print the equivalent curl command
    #[arg(long)]
    show_curl: bool,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_quantity(text: &str) -> Result<Quantity, String> {
    let number: i64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    Quantity::try_from(number).map_err(|invalid| invalid.message)
}

impl SubscriptionCommand {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let (db, _) = bootstrap::open().await?;
        match self {
            Self::Show { id, tenant, json } => show(&db, id, &tenant, json).await,
            Self::Create(args) => args.run(&db).await,
            Self::Update(args) => args.run(&db).await,
        }
    }
}

/// What `perennial subscription show --json` prints.
#[derive(Serialize)]
struct SubscriptionOutput {
    subscription: SubscriptionView,
    payments: Vec<DeletableView<PaymentView>>,
    /// Oldest first.
    ledger: Vec<LedgerEntryView>,
    #[serde(flatten)]
    provider: ProviderReportJson,
}

async fn show(
    db: &Databases,
    id: SubscriptionId,
    tenant: &TenantArg,
    json: bool,
) -> anyhow::Result<()> {
    let tenant = tenant.resolve(&db.home()?.connection().await?).await?;
    let database = db.cell(&tenant.cell)?;
    let subscription = table::find(database, subscriptions::scope(&tenant), id).await?;
    let subscription = subscription.with_context(|| {
        format!(
            "there is no subscription {id} (if it was deleted, `perennial user show {id}` shows it)"
        )
    })?;
    let now = bootstrap::clocks(db).await?.billing.now();
    let mut connection = database.connection().await?;
    let mut payments = subscription_payments::table::list_by_user_with_deleted(
        &connection,
        tenant.id,
        subscription.user,
    )
    .await?;
    payments.retain(|(payment, _)| payment.subscription == id);
    let all = (AgeOrder::OldestFirst, None);
    let entries = ledger::ENTRIES
        .read(&connection, tenant.id, id, all, i64::MAX)
        .await?;
    let records = [(subscription, None)];
    let provider =
        ProviderReport::load(&mut connection, tenant.id, &records, &payments, now).await?;
    let [(subscription, _)] = &records;
    if json {
        let export = SubscriptionOutput {
            subscription: SubscriptionView::at(subscription, now),
            payments: payments.iter().map(payment_view).collect(),
            ledger: entries.iter().map(LedgerEntryView::from).collect(),
            provider: provider.to_json(),
        };
        println!("{}", serde_json::to_string(&export)?);
        return Ok(());
    }
    let mut event_subjects = vec![subscription.id.uuid()];
    event_subjects.extend(payments.iter().map(|(payment, _)| payment.id.uuid()));
    let report = SubscriptionReport {
        slugs: subscription_plans::table::slugs(&connection, tenant.id).await?,
        histories: load_histories(&connection, tenant.id, &[subscription.id.uuid()]).await?,
        payments: &payments,
        provider: &provider,
        now,
    };
    { records.iter() }.for_each(|record| report.print(record));
    explain::print_ledger(subscription, &entries);
    event_lines::print(db, &connection, tenant.id, &event_subjects).await
}

impl SubscriptionCreateArgs {
    async fn run(mut self, db: &Databases) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let metadata = std::mem::take(&mut self.metadata);
        let mut body = RequestFields::default()
            .with_metadata(metadata)
            .into_body()?;
        let metadata = metadata_field::from_create(&mut body);
        let metadata = body.finish(|| metadata).map_err(into_error)?;
        let user = self.user.find_existing(database, &tenant).await?;
        let plan = subscription_plans::table::find(database, tenant.id, &self.plan).await?;
        let plan = plan.with_context(|| {
            format!(
                "there is no plan with the slug {}; GET /subscription-plans lists them",
                self.plan
            )
        })?;
        let (clocks, context) = (bootstrap::clocks(db).await?, bootstrap::system_context());
        let mut connection = database.connection().await?;
        let tx = connection.begin();
        let (user_ref, plan_ref) = (UserRef::Id(user.id), PlanRef::Id(plan.id));
        let (known_user, offer) = tokio::try_join!(
            biased;
            users::lock_sql::lock_key_share(&tx, tenant.id, &user_ref),
            subscription_plans::table::lock_offer_key_share(&tx, tenant.id, &plan_ref),
        )?;
        let (Some(known_user), Some(offer)) = (known_user, offer) else {
            bail!("the user or the plan has just been deleted");
        };
        let had_trial =
            offer.trial_days > 0 && table::had_trial(&tx, tenant.id, user.id, plan.id).await?;
        let now = clocks.billing.now();
        let new = NewSubscription {
            billing_cycle: self.billing_cycle,
            price: self.price.clone(),
            quantity: self.quantity,
            status: self.status,
            external_user_id: known_user.external_id,
            metadata,
            ..NewSubscription::new(user.id)
        };
        let creation = CreateContext {
            offer: &offer,
            lifecycle: tenant.lifecycle,
            had_trial,
            id: context.ids.generate(now),
            now,
        };
        let created = Subscription::create(&new, &creation).map_err(|errors| {
            let messages: Vec<String> = errors
                .iter()
                .map(|(field, invalid)| match invalid.rule {
                    Rule::PlanInactive => format!("the plan {} is not active", self.plan),
                    _ => format!("{field} {}", invalid.message),
                })
                .collect();
            anyhow::anyhow!(messages.join("; "))
        })?;
        let change = ChangeContext {
            tenant: tenant.id,
            actor: context.actor(),
            ids: context.ids,
            now,
            tx: &tx,
        };
        let view = change.insert_subscription(&created).await?;
        let view = view.context("a subscription without an external id is always added")?;
        tx.commit().await?;
        if self.json {
            println!("{}", serde_json::to_string(&view)?);
        } else {
            let subscription = &created.after;
            let sentence = explain::sentence(subscription, now);
            print_wrapped(&format!("{}  {sentence}", subscription.id));
        }
        if self.show_curl {
            self.print_curl(&created.after);
        }
        Ok(())
    }

    /// Prints the equivalent curl command, split into lines that fit 80 columns.
    fn print_curl(&self, subscription: &Subscription) {
        let mut body = json!({
            "user_id": subscription.user.to_string(),
            "subscription_plan_id": subscription.plan.id.to_string(),
        });
        if let Some(fields) = body.as_object_mut() {
            if let Some(status) = self.status {
                fields.insert("status".to_owned(), status.as_str().into());
            }
            if let Some(cycle) = self.billing_cycle {
                fields.insert("billing_cycle".to_owned(), cycle.as_str().into());
            }
            if let Some(price) = subscription.custom_price {
                fields.insert("price".to_owned(), price.to_string().into());
            }
            if let Some(quantity) = self.quantity {
                fields.insert("quantity".to_owned(), quantity.get().into());
            }
            if !subscription.metadata.pairs().is_empty() {
                fields.insert("metadata".to_owned(), json!(subscription.metadata.pairs()));
            }
        }
        let body = body.to_string().replace(",\"", ",\n    \"");
        eprintln!("the same with curl:");
        eprintln!("  curl $URL/subscriptions -H \"client-id: $CLIENT_ID\" --json \\");
        eprintln!("   '{body}'");
    }
}
