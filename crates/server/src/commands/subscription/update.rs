//! `perennial subscription update`

use anyhow::bail;
use clap::{ArgAction, Args};
use perennial_domain::{BillingCycle, Slug, SubscriptionId, SubscriptionStatus};

use crate::{
    commands::{
        bootstrap, explain,
        request_fields::{MetadataArgs, RequestFields, into_error},
        tenant::TenantArg,
        terminal::print_wrapped,
    },
    db::Databases,
    http::etag::IfMatch,
    subscriptions::{self, UpdateRequest, update_subscription},
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perennial subscription update sub_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --status cancelled
  perennial subscription update sub_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --plan team --quantity 5
  perennial subscription update sub_0192f0c1a2b37c4d8e5f60718293a4b5 \\
    --renews-at 2026-12-24T00:00:00Z

Fields without a flag keep their value. An empty value, such as --ends-at \"\",
clears the field.")]
pub struct SubscriptionUpdateArgs {
    /// The subscription's id (sub_…)
    id: SubscriptionId,
    /// The new status: cancelled ends it with its period, active undoes that or resumes it,
    /// paused pauses it, expired ends it now
    #[arg(long)]
    status: Option<SubscriptionStatus>,
    /// The slug of another plan
    #[arg(long)]
    plan: Option<Slug>,
    /// The billing cycle
    #[arg(long)]
    billing_cycle: Option<BillingCycle>,
    /// The price of one unit for one billing cycle, such as 19.99; empty for the plan's price
    #[arg(long)]
    price: Option<String>,
    /// How many units of the plan, such as seats
    #[arg(long)]
    quantity: Option<i64>,
    /// false suspends access in any status, true lifts the suspension
    #[arg(long, action = ArgAction::Set)]
    is_active: Option<bool>,
    /// When it renews, such as 2026-11-15T09:30:00Z; computed in managed billing
    #[arg(long, value_name = "TIME")]
    renews_at: Option<String>,
    /// Give free time up to then, in managed billing
    #[arg(long, value_name = "TIME")]
    free_until: Option<String>,
    /// When it ends; empty for no end
    #[arg(long, value_name = "TIME")]
    ends_at: Option<String>,
    /// The payment provider's id of the subscription; empty for none
    #[arg(long, value_name = "ID")]
    external_subscription_id: Option<String>,
    #[command(flatten)]
    metadata: MetadataArgs,
    /// Change only the record: send no cancellation to the payment provider that runs the
    /// subscription
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    tenant: TenantArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl SubscriptionUpdateArgs {
    pub(super) async fn run(self, db: &Databases) -> anyhow::Result<()> {
        let tenant = self.tenant.resolve(&db.home()?.connection().await?).await?;
        let database = db.cell(&tenant.cell)?;
        let fields = RequestFields::default()
            .with("status", self.status.map(SubscriptionStatus::as_str))
            .with(
                "subscription_plan_slug",
                self.plan.map(|slug| slug.to_string()),
            )
            .with(
                "billing_cycle",
                self.billing_cycle.map(BillingCycle::as_str),
            )
            .with_nullable("price", self.price)
            .with("quantity", self.quantity)
            .with("is_active", self.is_active)
            .with_nullable("renews_at", self.renews_at)
            .with("free_until", self.free_until)
            .with_nullable("ends_at", self.ends_at)
            .with_nullable("external_subscription_id", self.external_subscription_id)
            .with_metadata(self.metadata);
        if fields.is_empty() {
            bail!("nothing to change; see `perennial subscription update --help`");
        }
        let clock = bootstrap::clocks(db).await?.billing;
        let origin = bootstrap::change_origin(&tenant, clock);
        let request = UpdateRequest {
            id: self.id,
            user: None,
            if_match: IfMatch::ABSENT,
            fields: fields.into_body()?,
            is_local: self.local,
        };
        let view = update_subscription(database, &origin, request).await;
        let view = view.map_err(into_error)?;
        if self.json {
            println!("{}", serde_json::to_string(&view)?);
            return Ok(());
        }
        let scope = subscriptions::scope(&tenant);
        if let Some(subscription) = subscriptions::table::find(database, scope, self.id).await? {
            let sentence = explain::sentence(&subscription, clock.now());
            print_wrapped(&format!("{}  {sentence}", subscription.id));
        }
        Ok(())
    }
}
